package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// ModelAbout is what models.about says of one model. Zero and nil where it says nothing.
type ModelAbout struct {
	Context int64 // tokens that the model takes at once
	Vision  *bool // whether it sees images
	Price   *ModelPrice
}

// ModelPrice is in millionths of the currency for a million tokens.
type ModelPrice struct {
	Input, Output int64
	Cached        *int64 // of input that the provider had read before; nil: as Input
	Currency      string // as USD
}

const (
	usualCurrency = "USD"
	mostContext   = 1_000_000_000
)

var (
	currencyForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z]{3}$`) })
	priceForm    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6})?$`) })
)

// Known reads models.about: names of models, each followed by what is known of it. It refuses prices in several currencies, since use is summed by day.
func (m Models) Known() (map[string]ModelAbout, error) {
	out := map[string]ModelAbout{}
	words := strings.Fields(strings.Join(m.About, " "))
	currency, dearest := "", ""
	for len(words) > 0 {
		name := words[0]
		switch _, twice := out[name]; {
		case strings.Contains(name, "="):
			return nil, bad("models.about", fmt.Sprintf("has %q without a model before it, such as openai/NAME", name))
		case !strings.Contains(name, "/"):
			return nil, bad("models.about", fmt.Sprintf("has names such as openai/NAME, not %q", name))
		case twice:
			return nil, bad("models.about", fmt.Sprintf("has %q twice", name))
		}
		end := 1
		for end < len(words) && strings.Contains(words[end], "=") {
			end++
		}
		about, err := modelAbout(words[1:end])
		if err != nil {
			return nil, bad("models.about", fmt.Sprintf("says of %s: %v", name, err))
		}
		if p := about.Price; p != nil {
			if currency != "" && currency != p.Currency {
				return nil, bad("models.about", fmt.Sprintf("has prices in %s (%s) and in %s (%s); one server counts in one currency", currency, dearest, p.Currency, name))
			}
			currency, dearest = p.Currency, name
		}
		out[name], words = about, words[end:]
	}
	return out, nil
}

// modelAbout reads what is said of one model: context=400000 vision=on input=1.25 output=10 cached=0.125 currency=USD.
func modelAbout(words []string) (ModelAbout, error) {
	var about ModelAbout
	said := map[string]string{}
	price := ModelPrice{Currency: usualCurrency}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if _, twice := said[key]; twice {
			return about, fmt.Errorf("%s twice", key)
		}
		said[key] = value
		var err error
		switch key {
		case "context":
			about.Context, err = strconv.ParseInt(value, 10, 64)
			if err != nil || about.Context < 1 || about.Context > mostContext {
				err = fmt.Errorf("%q is not a number of tokens from 1 to %d", value, mostContext)
			}
		case "vision":
			about.Vision = new(bool)
			err = boolean(value, about.Vision)
		case "input":
			price.Input, err = modelPrice(value)
		case "output":
			price.Output, err = modelPrice(value)
		case "cached":
			price.Cached = new(int64)
			*price.Cached, err = modelPrice(value)
		case "currency":
			if price.Currency = value; !currencyForm().MatchString(value) {
				err = fmt.Errorf("%q is not a currency such as USD", value)
			}
		default:
			err = fmt.Errorf("there is no %q; there are context, vision, input, output, cached and currency", key)
		}
		if err != nil {
			return about, err
		}
	}
	_, in := said["input"]
	_, out := said["output"]
	_, cached := said["cached"]
	_, currency := said["currency"]
	switch {
	case in && out:
		about.Price = &price
	case in || out || cached || currency:
		return about, fmt.Errorf("a price has both input and output")
	}
	return about, nil
}

// modelPrice reads a price for a million tokens, in millionths.
func modelPrice(text string) (int64, error) {
	if !priceForm().MatchString(text) {
		return 0, fmt.Errorf("%q is not a price for a million tokens, such as 1.25, with at most 6 digits before and after the point", text)
	}
	whole, part, _ := strings.Cut(text, ".")
	return strconv.ParseInt(whole+(part + "000000")[:6], 10, 64)
}
