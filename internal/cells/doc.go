// Package cells writes values as text: cells of tables for people, JSON, CSV, and lines of the last two. Package
// format/text reads its output back as the same values.
package cells
