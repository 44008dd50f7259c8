// Package write writes CFiles: columns, bloom files, delta files and ad-hoc indexes, block by block in one pass.
package write
