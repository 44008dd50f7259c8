// Package text reads and writes the text formats: "csv", "tsv" and "jsonl".
package text
