package write

import "slices"

// held returns the memory in bytes that the current row group occupies, including buffers kept for the next one.
func (w *Writer) held() int64 {
	n := int64(0)
	if w.filterSpill.open != nil { // otherwise they cannot be spilled
		n = w.filterBytes
	}
	for _, c := range w.cols {
		n += c.held()
	}
	return n + int64(len(w.ws.free)*w.ws.piece)
}

// held returns the memory in bytes that the chunk occupies.
func (c *ChunkWriter) held() int64 {
	n := c.out.held() + c.dictOut.held() + 8*int64(cap(c.hashes)) + int64(cap(c.def)+cap(c.rep))
	n += int64(cap(c.page.fixed) + cap(c.page.data) + 4*cap(c.page.offs))
	if d := c.dict; d != nil {
		n += int64(cap(d.fixed) + cap(d.data) + 4*(cap(d.offs)+cap(d.slots)+cap(d.hashes)))
	}
	return n
}

// reduceMemory reduces memory if more is held than allowed. Finished pages are moved to the temporary file. If that is
// not enough, unfinished pages are finished and moved as well, and the largest dictionaries end. If there is no
// temporary file, or the memory still exceeds the limit, the row group ends.
func (w *Writer) reduceMemory() error {
	if w.held() <= w.o.memory {
		return nil
	}
	if w.spill.open == nil {
		return w.endGroup()
	}
	if err := w.spillPages(); err != nil {
		return err
	}
	if w.held() <= w.o.memory/2 {
		return nil
	}
	for _, c := range w.cols {
		if err := c.endPage(); err != nil {
			return err
		}
		c.freePage()
		if err := c.out.spill(&w.spill); err != nil {
			return err
		}
	}
	if w.held() <= w.o.memory/2 {
		return nil
	}
	for _, c := range w.cols {
		if c.dictState != dictActive || c.held() <= w.o.memory/int64(4*len(w.cols)) {
			continue
		}
		if err := c.retireDictionary(); err != nil {
			return err
		}
		if err := c.dictOut.spill(&w.spill); err != nil {
			return err
		}
	}
	if w.held() <= w.o.memory/2 {
		return nil
	}
	return w.endGroup()
}

// spillPages moves all finished pages to the temporary file.
func (w *Writer) spillPages() error {
	for _, c := range w.cols {
		if err := c.out.spill(&w.spill); err != nil {
			return err
		}
	}
	return nil
}

// freePage releases the memory of a finished page, and duplicate hashes.
func (c *ChunkWriter) freePage() {
	c.page, c.def, c.rep, c.vals = dense{}, nil, nil, nil
	slices.Sort(c.hashes)
	c.hashes = slices.Clone(slices.Compact(c.hashes))
}

// retireDictionary ends the dictionary as if it were full, and releases its memory.
func (c *ChunkWriter) retireDictionary() error {
	head, body, raw, err := c.dictionaryPage()
	if err != nil {
		return err
	}
	c.dictRaw = raw
	c.dictOut.add(head, c.workspace)
	c.dictOut.add(body, c.workspace)
	c.dict, c.dictState = nil, dictRetired
	return nil
}

// freeAll releases buffers that were kept for the next row group.
func (c *ChunkWriter) freeAll() {
	c.page, c.def, c.rep, c.vals, c.hashes, c.dict, c.free = dense{}, nil, nil, nil, nil, nil, nil
}
