package ladder

import (
	"fmt"
	"strings"
	"time"
)

// A Profile is how thorough a run is.
type Profile struct {
	Name string
	Says string

	scenarios    []string
	rounds       int
	warmUp, hold time.Duration
	rates        []float64 // of a ladder, per core
	streams      []int     // open at once
	streamHold   time.Duration
	idle         []int     // connections
	soakRates    []float64 // per core
	soakSeconds  float64
}

// Profiles lists all, the quickest first.
func Profiles() []Profile {
	const s = time.Second
	return []Profile{
		{
			Name: "quick", Says: "all systems at two rates and with some open streams, in some minutes; no knee",
			scenarios: []string{"overview"}, rounds: 1, warmUp: 3 * s, hold: 8 * s,
			rates: []float64{250, 1000, 2000}, streams: []int{1000}, streamHold: 4 * s, idle: []int{100, 1000}, soakRates: []float64{100}, soakSeconds: 10,
		},
		{
			Name: "local", Says: "up to the end of each system, as far as one machine can tell",
			scenarios: []string{"1", "2", "3", "6", "7", "8", "9", "11", "12"}, rounds: 3, warmUp: 3 * s, hold: 8 * s,
			rates:   []float64{250, 500, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 8000},
			streams: []int{500, 2000, 4000, 8000}, streamHold: 8 * s, idle: []int{100, 1000, 5000, 9000, 15_000}, soakRates: []float64{200, 400}, soakSeconds: 30,
		},
		{
			Name: "full", Says: "all scenarios with long holds and three rounds, as they are published; hours",
			scenarios: scenarioNames(), rounds: 3, warmUp: 30 * s, hold: 90 * s,
			rates:   []float64{250, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 5000, 6000, 8000, 10_000},
			streams: []int{500, 1000, 2000, 4000, 6000, 8000, 9000, 12_000, 24_000}, streamHold: 30 * s,
			idle: []int{100, 1000, 5000, 9000, 15_000, 20_000}, soakRates: []float64{100, 500, 1000}, soakSeconds: 180,
		},
	}
}

func findProfile(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("ladder: no profile %q: want one of %s", name, strings.Join(names, ", "))
}
