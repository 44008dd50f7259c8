// Package look is the verbs that look at tables, and change nothing.
package look
