// Package layout is the lowest floor of CarbonData: the structures of its files, parsed and written. Thrift messages
// (schema, file header and footer, data chunks, index files), the metadata of an encoded page, the Java objects that
// formats 1 and 2 keep, and the findings by name. It deals with bytes and their positions, not with rows.
package layout
