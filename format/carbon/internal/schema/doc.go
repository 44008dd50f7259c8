// Package schema has the columns of CarbonData: the tree that the column schemas of a file or table form, their Arrow
// types and back, constants of a column (partition values, defaults), and the options of writers.
package schema
