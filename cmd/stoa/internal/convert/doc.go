// Package convert has the verbs that write tables from others, convert and recover, and the proof that nothing is
// missing.
package convert
