// Package page looks at the page of stoa serve with a real browser; see README.md.
package page
