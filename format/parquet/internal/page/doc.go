// Package page decodes pages: their levels, and their values from every encoding into vectors of the types that a
// schema's columns have as Arrow's.
package page
