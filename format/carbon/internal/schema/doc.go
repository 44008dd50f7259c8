// Package schema is what a column is: the tree of columns that the column schemas of a file or table make, their Arrow
// types and back, constants of a column (partition values, defaults), and the options of writers.
package schema
