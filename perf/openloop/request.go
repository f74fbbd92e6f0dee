package openloop

import (
	"bytes"
	"math/rand/v2"
	"sync"
)

// A request is the bytes of one: front, then so much prose, then back. All
// share their prose, so that large bodies take no memory of their own.
type request struct {
	front []byte
	prose int
	back  []byte
}

func (r *request) bytes() int { return len(r.front) + r.prose + len(r.back) }

// proseLine has escapes now and then as prompts have them. Requests hold whole
// lines of it.
const proseLine = `The quick brown fox jumps over the lazy dog, and \"runs\" home.\n`

var printed struct {
	sync.Mutex
	prose []byte
}

// prose is n bytes of whole lines. Nobody may write to them.
func prose(n int) []byte {
	printed.Lock()
	defer printed.Unlock()
	if len(printed.prose) < n {
		printed.prose = bytes.Repeat([]byte(proseLine), n/len(proseLine)+1)
	}
	return printed.prose[:n:n]
}

// A job is one scheduled request.
type job struct {
	due    int64 // on the generator's clock
	held   bool  // belongs to the hold: counts
	kind   Kind
	stream bool
	manner manner
	*request
}

// A schedule says what request n is. Owner: the generator.
type schedule struct {
	mix      *Mix
	variants [kinds][2][]request // by kind, and whether they ask for a stream
	troubles [manners][]Mix      // of mischief, used in turn
	random   *rand.Rand          // of mischief
}

func newSchedule(m *Mix) *schedule {
	s := &schedule{mix: m, random: rand.New(rand.NewPCG(m.Seed, kinds+1))}
	for kind := range s.variants {
		if m.streams() < 1 {
			s.variants[kind][0] = m.variants(Kind(kind), false)
		}
		if m.streams() > 0 {
			s.variants[kind][1] = m.variants(Kind(kind), true)
		}
	}
	s.troubles[slow] = []Mix{m.asking(m.SlowWords)}
	s.troubles[leaving] = []Mix{*m}
	for _, words := range m.FaultWords {
		s.troubles[faulty] = append(s.troubles[faulty], m.asking(words))
	}
	return s
}

// variants makes the requests of one kind.
func (m Mix) variants(kind Kind, stream bool) []request {
	m.Stream = stream
	r := rand.New(rand.NewPCG(m.Seed, uint64(kind)+1))
	out := make([]request, variantsMade)
	for i := range out {
		out[i] = m.request(kind, m.key(i), m.BodyBytes(r))
	}
	return out
}

// turn spreads a share evenly over a sequence. It says whether member n is of
// the share, and the how manieth it is of the share or of the others.
func turn(n int, share float64) (is bool, index int) {
	before, after := int(float64(n)*share), int(float64(n+1)*share)
	if after > before {
		return true, before
	}
	return false, n - before
}

// job is request n. Mischief is spread evenly, and what is left is ordinary:
// kinds take turns, and of each kind the streams are spread evenly.
func (s *schedule) job(n int) job {
	left := 1.0
	for by, share := range s.mix.shares() {
		if share == 0 {
			continue
		}
		is, index := turn(n, min(share/left, 1))
		if is {
			return s.trouble(manner(by), index)
		}
		n, left = index, left-share
	}
	j := job{kind: Kind(n % kinds)}
	i := n / kinds
	asked := 0
	if j.stream, _ = turn(i, s.mix.streams()); j.stream {
		asked = 1
	}
	j.request = &s.variants[j.kind][asked][i%variantsMade]
	return j
}

// trouble is request n of one kind of mischief.
func (s *schedule) trouble(by manner, n int) job {
	j := job{kind: Kind(n % kinds), manner: by}
	i := n / kinds
	m := s.troubles[by][i%len(s.troubles[by])]
	m.Stream, _ = turn(i/len(s.troubles[by]), m.streams())
	j.stream = m.Stream
	r := m.request(j.kind, m.key(i), m.BodyBytes(s.random))
	j.request = &r
	return j
}
