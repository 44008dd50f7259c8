// Package verify holds what a file says against what is in it.
package verify
