// Package write writes a RedFile in one pass: row group by row group, the metadata last.
package write
