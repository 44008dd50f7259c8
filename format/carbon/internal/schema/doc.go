// Package schema has the columns of CarbonData: the tree that the column schemas of a file or table form, the
// conversion to and from Arrow types, constants of a column (partition values, defaults), and the options of writers.
package schema
