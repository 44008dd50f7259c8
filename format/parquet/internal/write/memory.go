package write

import "slices"

// held is how much memory the row group that is being filled takes, with what is kept for the next.
func (w *Writer) held() int64 {
	n := int64(0)
	if w.late.open != nil { // else they stay, whatever is done
		n = w.waiting
	}
	for _, c := range w.cols {
		n += c.held()
	}
	return n + int64(len(w.ws.free)*w.ws.piece)
}

// held is how much memory the chunk takes.
func (c *ChunkWriter) held() int64 {
	n := c.out.held() + c.dictOut.held() + 8*int64(cap(c.hashes)) + int64(cap(c.def)+cap(c.rep))
	n += int64(cap(c.page.fixed) + cap(c.page.data) + 4*cap(c.page.offs))
	if d := c.dict; d != nil {
		n += int64(cap(d.fixed) + cap(d.data) + 4*(cap(d.offs)+cap(d.slots)+cap(d.hashes)))
	}
	return n
}

// relieve makes room if more is held than may be. Finished pages go to the temporary file; if that is not enough, those
// that are being filled are finished and go, too, and the dictionaries that are largest end. If there is no temporary
// file, or all that is not enough, the row group ends.
func (w *Writer) relieve() error {
	if w.held() <= w.o.memory {
		return nil
	}
	if w.spill.open == nil {
		return w.endGroup()
	}
	if err := w.unload(); err != nil {
		return err
	}
	if w.held() <= w.o.memory/2 {
		return nil
	}
	for _, c := range w.cols {
		if err := c.cut(); err != nil {
			return err
		}
		c.shed()
		if err := c.out.spill(&w.spill); err != nil {
			return err
		}
	}
	if w.held() <= w.o.memory/2 {
		return nil
	}
	for _, c := range w.cols {
		if c.mode != coded || c.held() <= w.o.memory/int64(4*len(w.cols)) {
			continue
		}
		if err := c.retire(); err != nil {
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

// unload moves all finished pages to the temporary file.
func (w *Writer) unload() error {
	for _, c := range w.cols {
		if err := c.out.spill(&w.spill); err != nil {
			return err
		}
	}
	return nil
}

// shed gives back the memory of a page that was cut, and what is there twice.
func (c *ChunkWriter) shed() {
	c.page, c.def, c.rep, c.vals = dense{}, nil, nil, nil
	slices.Sort(c.hashes)
	c.hashes = slices.Clone(slices.Compact(c.hashes))
}

// retire ends the dictionary, as if it were full, and gives back its memory.
func (c *ChunkWriter) retire() error {
	head, body, raw, err := c.dictionaryPage()
	if err != nil {
		return err
	}
	c.dictRaw = raw
	c.dictOut.add(head, c.workspace)
	c.dictOut.add(body, c.workspace)
	c.dict, c.mode = nil, retired
	return nil
}

// forgive gives back what was kept for the next row group.
func (c *ChunkWriter) forgive() {
	c.page, c.def, c.rep, c.vals, c.hashes, c.dict, c.free = dense{}, nil, nil, nil, nil, nil, nil
}
