// Package about has the verbs about stoa itself: formats, findings, help, manual pages, completion, the demo.
package about
