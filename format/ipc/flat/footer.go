package flat

import (
	"encoding/binary"

	"stoa/fault"
)

// AppendFooter makes the table Footer of a file. Its schema is the one in message, the flatbuffer of the schema
// message, which is embedded as a whole: offsets within it are relative and stay valid. A message that cannot be parsed
// is an error of class Corrupt.
//
//	 0 root u32 · vtable 12 bytes
//	16 table: vtable · schema · dictionaries · recordBatches · version
//	40 padding u32 · dictionaries: count u32, blocks of 24 bytes at 48
//	   padding u32 · recordBatches: count u32, blocks
//	   message
func AppendFooter(message []byte, dictionaries, batches []Block) ([]byte, error) {
	t, err := rootTable(message)
	if err != nil {
		return nil, err
	}
	schema, _, err := t.table(2, "header")
	if err != nil {
		return nil, err
	}
	const table, dictAt, v5 = 16, 44, 4
	batchAt := dictAt + 4 + 24*len(dictionaries) + 4
	inner := batchAt + 4 + 24*len(batches)
	le := binary.LittleEndian
	b := le.AppendUint32(nil, table)
	// sizes of vtable and table; offsets of version, schema, and the two lists
	for _, v := range []uint16{12, 20, 16, 4, 8, 12} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, table-4)
	b = le.AppendUint32(b, uint32(inner+schema.pos-(table+4)))
	b = le.AppendUint32(b, uint32(dictAt-(table+8)))
	b = le.AppendUint32(b, uint32(batchAt-(table+12)))
	b = le.AppendUint64(b, v5)
	b = le.AppendUint32(b, 0)
	b = appendBlocks(b, dictionaries)
	b = le.AppendUint32(b, 0)
	b = appendBlocks(b, batches)
	b = append(b, message...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b, nil
}

func appendBlocks(b []byte, blocks []Block) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(len(blocks)))
	for _, x := range blocks {
		b = le.AppendUint64(b, uint64(x.Off))
		b = le.AppendUint64(b, uint64(x.Meta))
		b = le.AppendUint64(b, uint64(x.Body))
	}
	return b
}

// MessageOfFooter makes a schema message from the schema in the footer of a file. The footer is embedded as a whole.
//
//	 0 root u32 · vtable 10 bytes · padding u16
//	16 table: vtable · header · version i16 · header_type u8, padding
//	   padding u32 · footer, at a multiple of 8
func MessageOfFooter(footer []byte, version int) ([]byte, error) {
	t, err := rootTable(footer)
	if err != nil {
		return nil, err
	}
	schema, ok, err := t.table(1, "schema")
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.Rel(t.pos, 4, "schema", "is missing")
	}
	const table, inner = 16, 32
	le := binary.LittleEndian
	b := le.AppendUint32(make([]byte, 0, inner+len(footer)), table)
	// sizes of vtable and table; offsets of version, header_type and header
	for _, v := range []uint16{10, 12, 8, 10, 4, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, table-4)
	b = le.AppendUint32(b, uint32(inner+schema.pos-(table+4)))
	b = le.AppendUint16(b, uint16(version))
	b = append(b, Schema, 0)
	b = le.AppendUint32(b, 0)
	return append(b, footer...), nil
}
