package browse

import (
	"context"
	"strings"

	"github.com/gdamore/tcell/v2"

	"stoa/serve"
)

// Driven is a browser on a screen that tests read. Between two keys it waits for all answers.
type Driven struct {
	b *browser
	s tcell.SimulationScreen
}

// Drive opens a place on a screen of w × h cells.
func Drive(ctx context.Context, s *serve.Server, place, name string, w, h int) *Driven {
	screen := tcell.NewSimulationScreen("UTF-8")
	screen.Init()
	screen.SetSize(w, h)
	d := &Driven{newBrowser(ctx, s, screen, true), screen}
	d.b.open(place, name)
	d.settle()
	return d
}

// settle waits until nothing works any more.
func (d *Driven) settle() {
	for d.b.draw(); d.b.pending > 0; d.b.draw() {
		f := <-d.b.done
		d.b.pending--
		f()
	}
}

// Press presses keys: one each, or the characters of a text.
func (d *Driven) Press(keys ...any) {
	for _, k := range keys {
		switch k := k.(type) {
		case tcell.Key:
			d.b.handle(tcell.NewEventKey(k, 0, 0))
			d.settle()
		case string:
			for _, r := range k {
				d.b.handle(tcell.NewEventKey(tcell.KeyRune, r, 0))
			}
			d.settle()
		}
	}
}

// Lines are the lines of the screen.
func (d *Driven) Lines() (lines []string) {
	cells, w, h := d.s.GetContents()
	for y := range h {
		var l strings.Builder
		for x := range w {
			l.WriteString(string(cells[y*w+x].Runes))
		}
		lines = append(lines, strings.TrimRight(l.String(), " "))
	}
	return lines
}

func (d *Driven) Screen() string  { return strings.Join(d.Lines(), "\n") }
func (d *Driven) Resize(w, h int) { d.s.SetSize(w, h); d.settle() }
func (d *Driven) Left() bool      { return d.b.ends }
func (d *Driven) Close()          { d.b.close(); d.s.Fini() }
func (d *Driven) Depth() int      { return len(d.b.stack) }
