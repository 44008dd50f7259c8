// Package cells writes values as text: cells of tables for people, JSON, CSV, and lines of the last two. What
// it writes, package format/text reads back as the same values.
package cells
