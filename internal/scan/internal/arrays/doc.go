// Package arrays joins, cuts and picks entries of Arrow arrays of every type that nested columns have, unions too.
package arrays
