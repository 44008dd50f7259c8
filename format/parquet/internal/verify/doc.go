// Package verify compares a file's claims about itself with its contents.
package verify
