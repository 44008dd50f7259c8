// Package change is the verbs that change tables.
package change
