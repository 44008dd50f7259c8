// Package codes lists the findings about Kudu's directories, with the severity and the help of each code, and makes
// findings of errors.
package codes
