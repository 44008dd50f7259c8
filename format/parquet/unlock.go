package parquet

import (
	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// openFooter gives the Thrift of an encrypted footer: FileCryptoMetaData, then the footer as a module.
func (r *reader) openFooter(b []byte) ([]byte, error) {
	c := wire.NewCursor(b, r.footer, "footer")
	t := thrift.NewReader(c, thrift.Compact)
	var a algorithm
	var id []byte
	for t.Struct("crypto_metadata"); t.Next(); {
		switch t.Field() {
		case 1:
			a = parseAlgorithm(t)
		case 2:
			id = t.Bytes("key_metadata")
		}
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	at := r.footer.Sub(int64(c.Pos()), int64(c.Left()))
	if !a.known {
		return nil, fault.Unsupportedf(r.footer, "footer/crypto_metadata",
			"an encryption that is neither AES_GCM_V1 nor AES_GCM_CTR_V1")
	}
	key := r.keys.find("", id)
	if key == nil {
		return nil, fault.Unsupportedf(at, "footer", "it is encrypted%s, and no key for it is given (--key-file)",
			quotedID(id))
	}
	s, err := newSealed(key, &a, r.keys)
	if err != nil {
		return nil, err
	}
	plain, used, err := s.open(c.Rest(), footerModule, 0, room)
	if err != nil {
		if moduleSize(c.Rest(), signatureSize) == 0 {
			return nil, fault.Locate(err, at, true, "footer")
		}
		return nil, wrongKey(at, "footer", "the footer", id)
	}
	if used != c.Left() {
		return nil, fault.Corruptf(at.Sub(int64(used), at.Len-int64(used)), "footer",
			"%d bytes behind the encrypted footer", c.Left()-used)
	}
	r.algorithm, r.sealed, r.hidden = &a, s, true
	return plain, nil
}

// wrongKey is that a module, which is there by its length, does not open: no cipher can tell a wrong key from a damaged
// module, so it is not called damage.
func wrongKey(at fault.Span, path, what string, id []byte) error {
	return fault.New(fault.Invalid, at, path,
		"the key given for %s%s does not open it: it is another key (or another AAD prefix), or its bytes were changed", what, quotedID(id))
}

// unlock opens what the keys open of a footer that was read: the metadata of columns.
func (r *reader) unlock(footer []byte) error {
	if a := r.meta.algorithm; a != nil { // a plain footer
		if !a.known {
			return nil // the columns say so
		}
		r.algorithm = a
		key := r.keys.find("", r.meta.signer)
		if key != nil {
			s, err := newSealed(key, a, r.keys)
			if err != nil {
				return err
			}
			n := r.meta.length
			if len(footer)-n != signatureSize || !s.signed(footer[:n], footer[n:]) {
				return wrongKey(r.footer, "footer.signature", "the signature of the footer", r.meta.signer)
			}
			r.sealed = s
		}
	}
	if r.algorithm == nil {
		return nil
	}
	for g, rg := range r.meta.RowGroups {
		ordinal := g
		if rg.Ordinal != nil {
			ordinal = int(*rg.Ordinal)
		}
		for k, c := range rg.Columns {
			if c.crypto == nil || k >= r.meta.Schema.NumColumns() {
				continue
			}
			if err := r.unlockChunk(c, g, k, ordinal); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlockChunk takes the metadata of a chunk whose key is known.
func (r *reader) unlockChunk(c *chunkMeta, group, column, ordinal int) error {
	s := r.sealed
	path := r.meta.Schema.Column(column).Path()
	if c.crypto.own {
		key := r.keys.find(path, c.crypto.id)
		if key == nil {
			return nil
		}
		var err error
		if s, err = newSealed(key, r.algorithm, r.keys); err != nil {
			return err
		}
	}
	if s == nil {
		return nil
	}
	s = s.of(ordinal, column)
	if c.locked != nil {
		b, _, err := s.open(c.locked, metaModule, 0, room)
		if err != nil {
			return wrongKey(r.footer, indexPath(group, column, "encrypted_column_metadata"), "column "+path,
				c.crypto.id)
		}
		cur := wire.NewInnerCursor(b, r.footer, indexPath(group, column, "encrypted_column_metadata")).
			Within(r.limits.Memory())
		m := parseColumnMeta(thrift.NewReader(cur, thrift.Compact))
		if cur.Err() != nil {
			return cur.Err()
		}
		c.MetaData = m
	}
	c.sealed, c.encrypted = s, false
	return nil
}
