"""Render answers for people: tables, trees and the map of the fleet. Nothing here decides anything."""
