package browse

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/gdamore/tcell/v2"

	"stoa/serve"
)

// view is what the screen shows.
type view interface {
	title() string
	begin(b *browser) // it is shown: it asks for what it needs
	draw(b *browser, at rect)
	key(b *browser, ev *tcell.EventKey) bool
	keys() string // the most important ones
}

// browser is the state of the screen. Only the loop of run touches it; what works meanwhile hands its result to it.
type browser struct {
	ctx     context.Context
	end     context.CancelFunc
	client  client
	screen  tcell.Screen
	colours bool

	stack   []view // the last one is shown
	asks    *prompt
	note    string // the line above the last one
	noteIs  style
	ends    bool
	done    chan func()
	pending int // results that will come
	undo    context.CancelFunc
	shown   context.Context // ends when another view is shown
}

func newBrowser(ctx context.Context, s *serve.Server, screen tcell.Screen, colours bool) *browser {
	b := &browser{client: client{s}, screen: screen, colours: colours, done: make(chan func(), 64)}
	b.ctx, b.end = context.WithCancel(ctx)
	b.shown, b.undo = context.WithCancel(b.ctx)
	return b
}

// close ends what still works, and waits for it.
func (b *browser) close() {
	b.end()
	for b.pending > 0 {
		f := <-b.done
		b.pending--
		f()
	}
	b.undo()
}

// run handles keys and results until the user leaves or the context ends.
func (b *browser) run() error {
	events, quit := make(chan tcell.Event, 16), make(chan struct{})
	defer close(quit)
	go b.screen.ChannelEvents(events, quit)
	for {
		b.draw()
		select {
		case <-b.ctx.Done():
			return b.ctx.Err()
		case ev, ok := <-events:
			if !ok {
				return nil // the terminal is gone
			}
			b.handle(ev)
		case f := <-b.done:
			b.pending--
			f()
		}
		if b.ends {
			return nil
		}
	}
}

func (b *browser) handle(ev tcell.Event) {
	switch ev := ev.(type) {
	case *tcell.EventResize:
		b.screen.Sync()
	case *tcell.EventKey:
		b.key(ev)
	}
}

func (b *browser) key(ev *tcell.EventKey) {
	switch {
	case ev.Key() == tcell.KeyCtrlC:
		b.ends = true
	case ev.Key() == tcell.KeyCtrlL:
		b.screen.Sync()
	case b.asks != nil:
		b.asks.key(b, ev)
	case b.top().key(b, ev):
	case ev.Key() == tcell.KeyEscape, ev.Key() == tcell.KeyBackspace2, ev.Key() == tcell.KeyBackspace, is(ev, 'q'):
		b.pop()
	case is(ev, '?'), ev.Key() == tcell.KeyF1:
		b.push(newText("keys", keysText))
	}
}

// is reports whether a key is that of a character.
func is(ev *tcell.EventKey, r rune) bool { return ev.Key() == tcell.KeyRune && ev.Rune() == r }

func (b *browser) top() view { return b.stack[len(b.stack)-1] }

// change shows another view: what was asked for by the one before is not waited for.
func (b *browser) change() {
	b.undo()
	b.shown, b.undo = context.WithCancel(b.ctx)
	b.say(plain, "")
	if len(b.stack) > 0 {
		b.top().begin(b)
	}
}

func (b *browser) push(v view) {
	b.stack = append(b.stack, v)
	b.change()
}

// replace shows v in place of the view that is shown.
func (b *browser) replace(v view) {
	b.stack[len(b.stack)-1] = v
	b.change()
}

func (b *browser) pop() {
	if len(b.stack) == 1 {
		b.ends = true
		return
	}
	b.stack = b.stack[:len(b.stack)-1]
	b.change()
}

func (b *browser) say(s style, format string, args ...any) {
	b.noteIs, b.note = s, fmt.Sprintf(format, args...)
}

// fails shows an error, unless nobody waits for the answer any more.
func (b *browser) fails(err error) {
	if !errors.Is(err, context.Canceled) {
		b.say(bad, "%s", strings.SplitN(err.Error(), "\n", 2)[0])
	}
}

// work runs do beside the loop, and then the function it returns in the loop if the same view is still shown.
func (b *browser) work(do func(ctx context.Context) func()) {
	ctx := b.shown
	b.pending++
	go func() {
		var then func()
		defer func() {
			if p := recover(); p != nil {
				stack := debug.Stack()
				then = func() { panic(fmt.Sprintf("%v\n%s", p, stack)) } // where the terminal is restored
			}
			b.done <- func() {
				if ctx.Err() == nil && then != nil {
					then()
				}
			}
		}()
		then = do(ctx)
	}()
}

// post runs a function in the loop, for work that has something to show before it ends.
func (b *browser) post(ctx context.Context, f func()) {
	select {
	case b.done <- func() {
		b.pending++ // run counts it as ended
		if ctx.Err() == nil {
			f()
		}
	}:
	case <-ctx.Done():
	}
}

// ask asks the server, and passes the answer to the loop; an error is shown.
func ask[T any](b *browser, what string, q url.Values, then func(*T)) {
	b.work(func(ctx context.Context) func() {
		doc := new(T)
		err := b.client.ask(ctx, what, q, doc)
		return func() {
			if err != nil {
				b.fails(err)
				return
			}
			then(doc)
		}
	})
}

// values are the parameters of a request.
func values(keysAndValues ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		q.Set(keysAndValues[i], keysAndValues[i+1])
	}
	return q
}

// draw draws the screen: a title, the view, a message or a prompt, and the keys.
func (b *browser) draw() {
	b.screen.Clear()
	b.screen.HideCursor()
	w, h := b.screen.Size()
	var titles []string
	for _, v := range b.stack {
		titles = append(titles, v.title())
	}
	title := strings.Join(titles, " › ")
	b.fill(0, 0, w, title, b.look(strong))
	if h > 4 {
		b.top().draw(b, rect{0, 1, w, h - 3})
	}
	if b.asks != nil {
		b.asks.draw(b, rect{0, h - 2, w, 2})
	} else {
		b.fill(0, h-2, w, b.note, b.look(b.noteIs))
		b.fill(0, h-1, w, b.top().keys()+"  ? keys  Esc back", b.look(dim))
	}
	b.screen.Show()
}

// reverse marks a line as chosen.
func (b *browser) reverse(x, y, w int) {
	for i := x; i < x+w; i++ {
		text, st, _ := b.screen.Get(i, y)
		b.screen.Put(i, y, text, st.Reverse(true))
	}
}
