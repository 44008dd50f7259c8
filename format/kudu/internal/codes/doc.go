// Package codes names what can be wrong with Kudu's directories, with the severity and the help of each kind of
// finding, and makes findings of errors.
package codes
