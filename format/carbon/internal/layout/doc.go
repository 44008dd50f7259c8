// Package layout is the lowest floor of CarbonData: the structures of its files, both ways. Thrift messages (schema,
// file header and footer, data chunks, index files), the metadata of an encoded page, the Java objects that formats 1
// and 2 keep, and the findings by name. It knows bytes and their places, nothing of rows.
package layout
