// Package about is the verbs about stoa itself: formats, findings, help, manual pages, completion, the demo.
package about
