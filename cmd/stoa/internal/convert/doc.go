// Package convert is the verbs that write tables from others: convert, recover, and what proves that nothing is
// missing.
package convert
