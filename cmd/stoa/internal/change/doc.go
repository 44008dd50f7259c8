// Package change has the verbs that change tables.
package change
