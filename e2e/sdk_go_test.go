package e2e_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// goSDK does with openai-go what the scripts do with the other client libraries.
func goSDK(t *testing.T, s *server) {
	client := sdk.NewClient(option.WithBaseURL(s.base+"/v1"), option.WithAPIKey(s.key), option.WithMaxRetries(0))
	params := func(input string) responses.ResponseNewParams {
		return responses.ResponseNewParams{Model: "scripted", Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt(input)},
			Include: []responses.ResponseIncludable{"code_interpreter_call.outputs"},
			Tools: []responses.ToolUnionParam{{OfCodeInterpreter: &responses.ToolCodeInterpreterParam{Container: responses.ToolCodeInterpreterContainerUnionParam{
				OfCodeInterpreterToolAuto: &responses.ToolCodeInterpreterContainerCodeInterpreterContainerAutoParam{}}}}}}
	}
	whole, err := client.Responses.New(t.Context(), params("compute"))
	if err != nil || whole.OutputText() != "The answer is 42." || whole.Output[0].AsCodeInterpreterCall().Outputs[0].AsLogs().Logs != "42\n" {
		t.Fatalf("%v %+v", err, whole)
	}
	if again, err := client.Responses.Get(t.Context(), whole.ID, responses.ResponseGetParams{}); err != nil || again.OutputText() != whole.OutputText() {
		t.Errorf("retrieve: %v %+v", err, again)
	}
	next := params("plot")
	next.PreviousResponseID = param.NewOpt(whole.ID)
	stream := client.Responses.NewStreaming(t.Context(), next)
	var code string
	var last responses.ResponseStreamEventUnion
	for n := int64(0); stream.Next(); n++ {
		last = stream.Current()
		if last.SequenceNumber != n {
			t.Errorf("event %d has number %d", n, last.SequenceNumber)
		}
		if d, ok := last.AsAny().(responses.ResponseCodeInterpreterCallCodeDeltaEvent); ok {
			code += d.Delta
		}
	}
	if stream.Err() != nil || last.Type != "response.completed" || !strings.Contains(code, "plot.txt") {
		t.Fatalf("%v %s %q", stream.Err(), last.Type, code)
	}
	output := last.Response.Output
	cited := output[len(output)-1].AsMessage().Content[0].AsOutputText().Annotations[0].AsContainerFileCitation()
	if cited.ContainerID != whole.Output[0].AsCodeInterpreterCall().ContainerID {
		t.Errorf("the chain has another container: %+v", cited)
	}
	content, err := client.Containers.Files.Content.Get(t.Context(), cited.ContainerID, cited.FileID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Body.Close() }()
	if text, err := io.ReadAll(content.Body); err != nil || string(text) != "plotted" {
		t.Errorf("%v %q", err, text)
	}
	background := params("slow")
	background.Background = param.NewOpt(true)
	started, err := client.Responses.New(t.Context(), background)
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := client.Responses.Cancel(t.Context(), started.ID); err != nil || ended.Status != "cancelled" {
		t.Errorf("%v %+v", err, ended)
	}
	previous := params("compute")
	previous.PreviousResponseID = param.NewOpt("resp_none")
	_, err = client.Responses.New(t.Context(), previous)
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 400 || e.Code != "previous_response_not_found" {
		t.Errorf("%v", err)
	}
	_, err = client.Responses.New(t.Context(), params("limited"))
	if e, ok := errors.AsType[*sdk.Error](err); !ok || e.StatusCode != 429 || e.Code != "rate_limit_exceeded" || e.Response.Header.Get("Retry-After") == "" {
		t.Errorf("%v", err)
	}
}
