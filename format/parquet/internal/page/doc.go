// Package page decodes pages: levels, and values of every encoding, into vectors of the Arrow types of the columns.
package page
