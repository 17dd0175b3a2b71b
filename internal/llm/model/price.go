package model

import "math/big"

// About is what an operator says of a model. Zero and nil where nothing is said.
type About struct {
	Context int64 // tokens that the model takes at once
	Vision  *bool // whether it sees images
	Price   *Price
}

// Price is in millionths of the currency for a million tokens.
type Price struct {
	Input, Output int64
	Cached        *int64 // of input that the provider had read before; nil: as Input
	Currency      string // as USD
}

// Cost is what tokens cost. Without a currency it is not known.
type Cost struct {
	Amount   float64 // a whole number of millionths
	Currency string
}

// MostCost is more than anybody pays for a turn, and little enough that sums of it fit.
const MostCost = 1e9

// Cost is what a use of the model costs, rounded to a millionth.
func (a About) Cost(u Usage) Cost {
	if a.Price == nil {
		return Cost{}
	}
	p := *a.Price
	cached := p.Input
	if p.Cached != nil {
		cached = *p.Cached
	}
	u = u.Plus(Usage{})
	u.CachedTokens = min(u.CachedTokens, u.InputTokens)
	sum := big.NewInt(million / 2) // so that what is cut off below rounds
	for _, part := range [][2]int64{{u.InputTokens - u.CachedTokens, p.Input}, {u.CachedTokens, cached}, {u.OutputTokens, p.Output}} {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
	}
	sum.Div(sum, big.NewInt(million))
	if most := big.NewInt(MostCost * million); sum.Cmp(most) > 0 {
		sum = most
	}
	return Cost{Amount: float64(sum.Int64()) / million, Currency: p.Currency}
}

const million = 1_000_000
