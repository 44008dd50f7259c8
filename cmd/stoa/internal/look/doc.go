// Package look has the verbs that look at tables without changing them.
package look
