"""What people see: tables, trees and the map of the fleet. Nothing here decides anything."""
