package loop

import (
	"strings"
	"testing"
)

// TestChargeFollowsTheKernel: output that the kernel has taken since is not
// charged any more, although its connection lies idle.
func TestChargeFollowsTheKernel(t *testing.T) {
	for name, run := range map[string]func(r *rig){
		"answer": func(r *rig) {
			c, u := r.exchange(post(chatPath, chatAsk))
			c.stuck = true
			u.send(given(200, asJSON, large(100_000)))
			c.readAll()
		},
		"request": func(r *rig) {
			c := r.accept()
			c.send(post(chatPath, strings.Replace(chatAsk, "hi", strings.Repeat("hi", 50_000), 1)))
			u := r.openStuck(true)
			u.readAll()
			u.send(given(200, asJSON, chatReply))
		},
		"refusal": func(r *rig) {
			c := r.accept()
			c.stuck = true
			c.send(head("GET", "/v1/models"))
			c.readAll()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			run(r)
			if n := r.loop.buffers.used; n != 0 {
				t.Errorf("%d bytes are charged and nothing is held", n)
			}
		})
	}
}
