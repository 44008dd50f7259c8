// Package verify compares what a file says about itself with what is in it.
package verify
