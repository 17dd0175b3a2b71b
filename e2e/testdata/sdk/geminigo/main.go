// What Google's Go module does against this server, unmodified. Environment: GOOGLE_GEMINI_BASE_URL, GEMINI_API_KEY, COVE_TEST_MODEL.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"google.golang.org/genai"
)

func main() {
	log.SetFlags(0)
	ctx, model := context.Background(), os.Getenv("COVE_TEST_MODEL")
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: os.Getenv("GEMINI_API_KEY"), Backend: genai.BackendGeminiAPI})
	if err != nil {
		log.Fatal(err)
	}
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{{CodeExecution: &genai.ToolCodeExecution{}}}}
	result, err := client.Models.GenerateContent(ctx, model, genai.Text("compute, please"), config)
	if err != nil || result.ExecutableCode() != "print(6*7)" || result.CodeExecutionResult() != "42\n" || result.Text() != "The answer is 42." {
		log.Fatal(err, result)
	}
	text := ""
	for chunk, err := range client.Models.GenerateContentStream(ctx, model, genai.Text("compute, please"), config) {
		if err != nil {
			log.Fatal(err)
		}
		text += chunk.Text()
	}
	if text != "The answer is 42." {
		log.Fatal(text)
	}
	upload(ctx, client, model, config)
	_, err = client.Models.GenerateContent(ctx, model, genai.Text("limited"), nil)
	if e := (genai.APIError{}); !errors.As(err, &e) || e.Code != 429 || e.Status != "RESOURCE_EXHAUSTED" {
		log.Fatal(err)
	}
	fmt.Println("ok all")
}

// upload uploads a file, whose size the client does not say, in two pieces, and has code read another one.
func upload(ctx context.Context, client *genai.Client, model string, config *genai.GenerateContentConfig) {
	large, err := client.Files.Upload(ctx, bytes.NewReader(bytes.Repeat([]byte("0123456789"), 900_000)), &genai.UploadFileConfig{MIMEType: "text/plain", DisplayName: "numbers"})
	if err != nil || *large.SizeBytes != 9_000_000 || large.DisplayName != "numbers" || large.State != genai.FileStateActive {
		log.Fatal(err, large)
	}
	table, err := client.Files.Upload(ctx, bytes.NewReader([]byte("a,b\n1,2\n")), &genai.UploadFileConfig{MIMEType: "text/csv"})
	if err != nil {
		log.Fatal(err)
	}
	contents := []*genai.Content{genai.NewContentFromParts([]*genai.Part{genai.NewPartFromURI(table.URI, table.MIMEType), genai.NewPartFromText("read what is attached")}, genai.RoleUser)}
	result, err := client.Models.GenerateContent(ctx, model, contents, config)
	if err != nil || result.CodeExecutionResult() != "a,b\n1,2\n" {
		log.Fatal(err, result)
	}
	if got, err := client.Files.Get(ctx, large.Name, nil); err != nil || got.URI != large.URI {
		log.Fatal(err, got)
	}
	found := map[string]bool{}
	for file, err := range client.Files.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		found[file.Name] = true
	}
	for _, file := range []*genai.File{large, table} {
		if _, err := client.Files.Delete(ctx, file.Name, nil); err != nil || !found[file.Name] {
			log.Fatal(err, found)
		}
	}
	_, err = client.Files.Get(ctx, table.Name, nil)
	if e := (genai.APIError{}); !errors.As(err, &e) || e.Code != 404 {
		log.Fatal(err)
	}
}
