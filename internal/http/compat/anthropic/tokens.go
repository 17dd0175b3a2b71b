package anthropic

import "cove/internal/llm/model"

// tokensOfTool is what the code execution tool adds of itself, about.
const tokensOfTool = 1000

// estimate is how many tokens a request takes, about: only the model's provider knows that.
func (r *request) estimate(in *input) int64 {
	n := model.Estimate(model.Request{System: r.system(in.system), Messages: in.history.messages, Tools: r.functions}, 0).InputTokens
	if r.python {
		n += tokensOfTool
	}
	return n
}

// countTokens answers with an estimate, and says so in a header.
func (s *server) countTokens(c *call) error {
	r, err := s.read(c, false)
	if err != nil {
		return err
	}
	in := &input{s: s, c: c, python: r.python, shell: r.shell, dry: true}
	if err := in.read(r.Messages, false); err != nil {
		return err
	}
	c.w.Header().Set("X-Estimate", "true")
	return c.reply(object{"input_tokens": r.estimate(in)})
}
