// Package cli is one run of the command: its streams, the flags that every verb has, its exit statuses, the places that
// it reads and may write, progress, and the arguments that verbs share.
package cli
