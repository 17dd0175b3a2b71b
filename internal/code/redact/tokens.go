package redact

import (
	"bytes"
	"strings"
)

// token is what a service's keys or tokens begin with, and the rest: of a set of bytes, and how many of them.
type token struct {
	name, begin string
	of          *[256]bool
	least, most int
}

// tokens are known by how they begin, as the rules of Gitleaks say (MIT licence; config/gitleaks.toml at commit b58d3f1 of 22 July 2026); those after the empty line are of services that it does
// not have, or has with other names, as the services' own pages show them.
var tokens = []token{
	{"1password-token", "ops_eyJ", &base, 250, 2000},
	{"adobe-secret", "p8e-", &alnum, 32, 32},
	{"age-key", "AGE-SECRET-KEY-1", &upper, 58, 58},
	{"alibaba-key", "LTAI", &alnum, 20, 20},
	{"artifactory-key", "AKCp", &alnum, 69, 69},
	{"artifactory-token", "cmVmd", &alnum, 59, 59},
	{"atlassian-token", "ATATT3", &dotted, 186, 186},
	{"aws-access-key", "ABIA", &upper, 16, 16},
	{"aws-access-key", "ACCA", &upper, 16, 16},
	{"aws-bedrock-key", "ABSK", &base, 109, 269},
	{"clojars-token", "CLOJARS_", &alnum, 60, 60},
	{"cloudflare-key", "v1.0-", &urlSafe, 171, 171},
	{"databricks-token", "dapi", &hex, 32, 32},
	{"digitalocean-token", "doo_v1_", &hex, 64, 64},
	{"digitalocean-token", "dop_v1_", &hex, 64, 64},
	{"digitalocean-token", "dor_v1_", &hex, 64, 64},
	{"doppler-token", "dp.pt.", &alnum, 43, 43},
	{"duffel-token", "duffel_live_", &dotted, 43, 43},
	{"dynatrace-token", "dt0c01.", &dotted, 89, 89},
	{"easypost-key", "EZAK", &alnum, 54, 54},
	{"fly-token", "fo1_", &urlSafe, 43, 43},
	{"fly-token", "fm1a_", &base, 100, 2000},
	{"fly-token", "fm1r_", &base, 100, 2000},
	{"fly-token", "fm2_", &base, 100, 2000},
	{"frameio-token", "fio-u-", &dotted, 64, 64},
	{"gitlab-token", "glpat-", &dotted, 20, 320},
	{"gitlab-token", "glagent-", &urlSafe, 50, 50},
	{"gitlab-token", "gldt-", &urlSafe, 20, 20},
	{"gitlab-token", "glffct-", &urlSafe, 20, 20},
	{"gitlab-token", "glft-", &urlSafe, 20, 20},
	{"gitlab-token", "glimt-", &urlSafe, 25, 25},
	{"gitlab-token", "gloas-", &urlSafe, 64, 64},
	{"gitlab-token", "glptt-", &hex, 40, 40},
	{"gitlab-token", "glrt-", &dotted, 20, 320},
	{"gitlab-token", "glsoat-", &urlSafe, 20, 20},
	{"google-api-key", "AIza", &urlSafe, 35, 35},
	{"grafana-token", "glc_", &base, 32, 400},
	{"grafana-token", "glsa_", &urlSafe, 41, 41},
	{"heroku-key", "HRKU-AA", &urlSafe, 58, 58},
	{"huggingface-token", "api_org_", &alnum, 34, 34},
	{"huggingface-token", "hf_", &alnum, 34, 40},
	{"infracost-token", "ico-", &alnum, 32, 32},
	{"linear-key", "lin_api_", &alnum, 40, 40},
	{"notion-token", "ntn_", &alnum, 46, 46},
	{"openshift-token", "sha256~", &urlSafe, 43, 43},
	{"perplexity-key", "pplx-", &alnum, 48, 48},
	{"planetscale-token", "pscale_oauth_", &dotted, 32, 64},
	{"planetscale-token", "pscale_pw_", &dotted, 32, 64},
	{"planetscale-token", "pscale_tkn_", &dotted, 32, 64},
	{"postman-key", "PMAK-", &urlSafe, 59, 59},
	{"prefect-key", "pnu_", &alnum, 36, 36},
	{"pulumi-token", "pul-", &hex, 40, 40},
	{"pypi-token", "pypi-AgEIcHlwaS5vcmc", &urlSafe, 50, 1000},
	{"readme-key", "rdme_", &alnum, 70, 70},
	{"rubygems-key", "rubygems_", &hex, 48, 48},
	{"sendinblue-key", "xkeysib-", &urlSafe, 81, 81},
	{"sentry-token", "sntrys_eyJ", &dotted, 60, 500},
	{"sentry-token", "sntryu_", &hex, 64, 64},
	{"shippo-token", "shippo_live_", &anyHex, 40, 40},
	{"shopify-token", "shpat_", &anyHex, 32, 32},
	{"shopify-token", "shpca_", &anyHex, 32, 32},
	{"shopify-token", "shppa_", &anyHex, 32, 32},
	{"shopify-token", "shpss_", &anyHex, 32, 32},
	{"slack-token", "xapp-", &urlSafe, 40, 200},
	{"slack-token", "xoxb-", &urlSafe, 20, 200},
	{"slack-token", "xoxe-", &urlSafe, 100, 200},
	{"slack-token", "xoxp-", &urlSafe, 20, 200},
	{"slack-token", "xoxs-", &urlSafe, 20, 200},
	{"sourcegraph-token", "sgp_", &urlSafe, 40, 57},
	{"square-token", "sq0atp-", &urlSafe, 22, 60},
	{"stripe-key", "rk_live_", &alnum, 20, 120},
	{"stripe-key", "sk_live_", &alnum, 20, 120},
	{"stripe-key", "sk_prod_", &alnum, 20, 120},
	{"twilio-key", "SK", &anyHex, 32, 32},
	{"vault-token", "hvb.", &urlSafe, 138, 300},
	{"vault-token", "hvs.", &urlSafe, 24, 120},

	{"anthropic-key", "sk-ant-", &urlSafe, 80, 200},
	{"cove-key", "cove_", &urlSafe, 50, 90},
	{"daytona-key", "dtn_", &hex, 64, 64},
	{"doppler-token", "dp.st.", &dotted, 40, 80},
	{"e2b-key", "e2b_", &hex, 40, 40},
	{"elevenlabs-key", "sk_", &hex, 48, 48},
	{"google-client-secret", "GOCSPX-", &urlSafe, 28, 28},
	{"google-token", "ya29.", &urlSafe, 60, 500},
	{"groq-key", "gsk_", &alnum, 48, 60},
	{"langsmith-key", "lsv2_pt_", &urlSafe, 43, 43},
	{"langsmith-key", "lsv2_sk_", &urlSafe, 43, 43},
	{"linear-token", "lin_oauth_", &hex, 64, 64},
	{"mailgun-key", "key-", &hex, 32, 32},
	{"model-key", "sk-", &hex, 32, 32}, // DeepSeek's and Alibaba's
	{"newrelic-key", "NRAK-", &upper, 27, 27},
	{"nvidia-key", "nvapi-", &urlSafe, 60, 80},
	{"openrouter-key", "sk-or-v1-", &hex, 64, 64},
	{"pinecone-key", "pcsk_", &urlSafe, 60, 90},
	{"replicate-token", "r8_", &alnum, 37, 37},
	{"square-token", "sq0csp-", &urlSafe, 43, 43},
	{"supabase-token", "sbp_", &hex, 40, 40},
	{"supabase-key", "sb_secret_", &urlSafe, 20, 60},
	{"tailscale-key", "tskey-auth-", &urlSafe, 30, 80},
	{"tavily-key", "tvly-", &urlSafe, 32, 60},
	{"xai-key", "xai-", &alnum, 70, 100},
}

// keyOwners are known by their names alone: their keys have no form that others have not, too.
var keyOwners = []string{"airtable", "algolia", "assemblyai", "cloudflare", "cohere", "datadog", "deepgram", "discord", "heroku", "mailgun", "mistral", "newrelic", "okta", "twilio"}

// formsOfTokens are the forms of tokens, and of the keys of keyOwners.
func formsOfTokens() (all []form) {
	for _, k := range tokens {
		all = append(all, form{k.name, k.begin, after(k.begin, k.of, k.least, k.most)})
	}
	for _, name := range keyOwners {
		for _, spelt := range []string{name, strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:]} {
			all = append(all, form{name + "-key", spelt, assignedKey})
		}
	}
	for _, spelt := range []string{"aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey"} {
		all = append(all, form{"aws-secret-key", spelt, func(text []byte, at int) (int, int) {
			from := valueOf(text, at+len(spelt))
			if to := run(text, from, &base); from > 0 && to-from == 40 && mixed(text[from:to]) {
				return from, to
			}
			return 0, 0
		}})
	}
	for _, spelt := range []string{"Authorization", "authorization", "AUTHORIZATION"} {
		all = append(all, form{"authorization", spelt, authorization})
	}
	return all
}

// assignedKey matches what is assigned to a name with a service's name and the word key, token or secret in it, and looks random.
func assignedKey(text []byte, at int) (int, int) {
	from := valueOf(text, at)
	if from == 0 {
		return 0, 0
	}
	name := bytes.ToLower(text[at:from])
	if !bytes.Contains(name, []byte("key")) && !bytes.Contains(name, []byte("token")) && !bytes.Contains(name, []byte("secret")) {
		return 0, 0
	}
	const least, most, bits = 20, 120, 3
	to := run(text, from, &dotted)
	if value := text[from:to]; len(value) >= least && len(value) <= most && entropy(value) >= bits && mixed(value) && !placeholder(value) {
		return from, to
	}
	return 0, 0
}

// authorization matches what a header of HTTP has behind its scheme.
func authorization(text []byte, at int) (int, int) {
	from := valueOf(text, at)
	for _, scheme := range []string{"basic ", "bearer ", "token "} {
		if from == 0 || from+len(scheme) > len(text) || !strings.EqualFold(string(text[from:from+len(scheme)]), scheme) {
			continue
		}
		from += len(scheme)
		to := run(text, from, &inToken)
		if value := text[from:to]; len(value) >= 12 && !placeholder(value) {
			return from, to
		}
		return 0, 0
	}
	return 0, 0
}

// valueOf returns where the value begins that is assigned to the name of which a part is at a place, or 0.
func valueOf(text []byte, at int) int {
	const longestName, longestSign = 60, 20
	i := at
	for i < len(text) && i-at < longestName && (urlSafe[text[i]] || text[i] == '"' || text[i] == '\'' || text[i] == ']') {
		i++
	}
	assigned := false
	for sign := i; i < len(text) && i-sign < longestSign && strings.IndexByte(" \t:=>\"'", text[i]) >= 0; i++ {
		assigned = assigned || text[i] == '=' || text[i] == ':'
	}
	if !assigned {
		return 0
	}
	return i
}
