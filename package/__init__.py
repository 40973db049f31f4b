"""The Function package, and the scripts that build and push both packages."""
