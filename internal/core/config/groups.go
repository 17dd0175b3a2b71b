package config

// Folders are where things are kept on this machine.
type Folders struct {
	Data     string `toml:"data" flat:"data" env:"COVE_HOME" default:"~/.local/share/cove" doc:"keeps the Python environments, downloads and history"`
	Runtime  string `toml:"runtime" flat:"runtime" env:"COVE_RUNTIME" default:"run in the data folder" doc:"keeps the state of running sandboxes; on a local disk"`
	Sessions string `toml:"sessions" flat:"sessions" env:"COVE_SESSIONS" default:"sessions in the data folder" doc:"keeps the sessions with a name"`
	Server   string `toml:"server" flat:"server_folder" env:"COVE_SERVER_FOLDER" default:"server in the data folder" doc:"keeps the sessions and files of cove serve"`
	Out      string `toml:"out" flat:"out" env:"COVE_OUT" flag:"--out" doc:"receives figures and files"`
	Ahead    string `toml:"ahead" env:"COVE_AHEAD" default:"none" doc:"has Python environments and warm interpreters that were made ahead, which are used where they fit; it is only read. The container image has one"`
}

// Sandbox is what code runs in.
type Sandbox struct {
	Engine        string   `toml:"engine" flat:"engine" env:"COVE_ENGINE" flag:"--engine" doc:"how code is isolated: gvisor, docker (containers, which cannot be saved; see docs/engines.md), or local (no isolation)"`
	DockerRuntime string   `toml:"docker_runtime" env:"COVE_DOCKER_RUNTIME" default:"runsc where the daemon has it, else the daemon's own" doc:"the runtime of the Docker daemon that the engine docker uses"`
	Memory        Size     `toml:"memory" flat:"memory" env:"COVE_MEMORY" flag:"--memory" doc:"memory of one sandbox"`
	CPUs          float64  `toml:"cpus" flat:"cpus" env:"COVE_CPUS" flag:"--cpus" unit:"cores" doc:"processor cores of one sandbox"`
	Timeout       Duration `toml:"timeout" flat:"timeout" env:"COVE_TIMEOUT" flag:"--timeout" zero:"no limit" doc:"wall clock of one execution"`
	MaxOutput     Size     `toml:"max_output" flat:"max_output" env:"COVE_MAX_OUTPUT" flag:"--max-output" doc:"output that one execution may deliver"`
	Root          bool     `toml:"root" env:"COVE_ROOT" flag:"--root" doc:"let sessions be made in which programs may run as root and change the system; see docs/root.md"`
	System        Size     `toml:"system" env:"COVE_SYSTEM" doc:"what root of a session may change in each part of its system: /, /usr, the list of packages, the Python environment"`
	// ShareTemplate has sandboxes map the template's memory from one file.
	ShareTemplate bool `toml:"share_template" env:"COVE_SHARE_TEMPLATE" doc:"hold the memory of the warm interpreter once for all sandboxes, which share its pages until they write to them; false gives each a copy, which takes 90 MB more"`
}

// Images are file systems that sessions can begin from.
type Images struct {
	Size  Size `toml:"size" env:"COVE_IMAGES_SIZE" doc:"what one image may have, unpacked"`
	Total Size `toml:"total" env:"COVE_IMAGES_TOTAL" zero:"no limit" doc:"what all images may take; those that nobody uses go first"`

	Allow   List     `toml:"allow" env:"COVE_IMAGES_ALLOW" doc:"images that callers of a server may have sessions begin from, such as python:3.12-slim, python:* or registry.example.com/team/*, where a * at the end makes a prefix; this machine's keys of registries and its private network are used for these. * alone allows all that anybody may have"`
	Fetches int      `toml:"fetches" env:"COVE_IMAGES_FETCHES" unit:"images" doc:"that a server fetches at once for its callers; of each key one"`
	Timeout Duration `toml:"timeout" env:"COVE_IMAGES_TIMEOUT" doc:"wall clock of fetching an image for a caller of a server, with the wait for its turn"`
}

// Packages are the Python environment, and what is installed on top of it.
type Packages struct {
	Set          string   `toml:"set" flat:"packages" env:"COVE_PACKAGES" flag:"--packages" doc:"the Python environment: standard (pandas, matplotlib, ...), standard-2024 (the same with pandas 2 and NumPy 1.26) or minimal (IPython alone)"`
	System       List     `toml:"system" env:"COVE_PACKAGES_SYSTEM" doc:"Debian packages that every sandbox has beside what is installed on this machine, such as graphviz, tesseract-ocr; they are installed once, in a sandbox, by the machine's apt; see docs/packages.md"`
	Python       string   `toml:"python" flat:"python" env:"COVE_PYTHON" default:"the newest suitable one on the PATH" doc:"the Python that environments are built from"`
	Install      bool     `toml:"install" flat:"packages_install" env:"COVE_PACKAGES_INSTALL" flag:"--no-install" doc:"install what code imports and the Python environment lacks"`
	Index        string   `toml:"index" flat:"packages_index" env:"COVE_PACKAGES_INDEX" default:"the one that uv or pip is set to use" doc:"address of the package index"`
	Allow        List     `toml:"allow" flat:"packages_allow" env:"COVE_PACKAGES_ALLOW" doc:"packages that are approved however little known they are; a * at the end makes a prefix"`
	AllowOnly    bool     `toml:"allow_only" flat:"packages_allow_only" env:"COVE_PACKAGES_ALLOW_ONLY" doc:"install nothing but packages.allow, dependencies included"`
	Deny         List     `toml:"deny" flat:"packages_deny" env:"COVE_PACKAGES_DENY" doc:"packages, or NAME==VERSION, that are never installed, not as dependencies either; a * at the end makes a prefix"`
	MinAge       Duration `toml:"min_age" flat:"packages_min_age" env:"COVE_PACKAGES_MIN_AGE" zero:"any age" doc:"how long a file must have been on the index before it is used, since most malicious ones are found within days"`
	MinAgeExempt List     `toml:"min_age_exempt" flat:"packages_min_age_exempt" env:"COVE_PACKAGES_MIN_AGE_EXEMPT" doc:"packages that packages.min_age does not hold for, such as your own; a * at the end makes a prefix"`
	NewName      Duration `toml:"new_name" flat:"packages_new_name" env:"COVE_PACKAGES_NEW_NAME" zero:"any age" doc:"how long a project outside the 15,000 best known must have existed before it is installed without approval"`
	MaxUnknown   int      `toml:"max_unknown" flat:"packages_max_unknown" env:"COVE_PACKAGES_MAX_UNKNOWN" unit:"names" zero:"none" doc:"names outside the 15,000 best known that the code of one session may have looked up on the index, since each tells the index what it says"`
	Offline      bool     `toml:"offline" flat:"packages_offline" env:"COVE_PACKAGES_OFFLINE" flag:"--offline" doc:"ask no index; use what was downloaded before and folders of wheels"`
	Build        bool     `toml:"build" flat:"packages_build" env:"COVE_PACKAGES_BUILD" flag:"--allow-build" doc:"build packages that have no wheel from source, in a throw-away sandbox"`
	BuildKnown   bool     `toml:"build_known" env:"COVE_PACKAGES_BUILD_KNOWN" doc:"build packages that have no wheel from source without being asked, in a throw-away sandbox, where they are among the 15,000 best known, have been there for packages.new_name, and need no compiler"`
	MaxCount     int      `toml:"max_count" flat:"packages_max_count" env:"COVE_PACKAGES_MAX_COUNT" unit:"packages" doc:"what one installation may bring, dependencies included"`
	MaxDownload  Size     `toml:"max_download" flat:"packages_max_download" env:"COVE_PACKAGES_MAX_DOWNLOAD" doc:"what one installation may download"`
	MaxUnpacked  Size     `toml:"max_unpacked" flat:"packages_max_unpacked" env:"COVE_PACKAGES_MAX_UNPACKED" doc:"what one installation may take on the disk"`
	MaxFiles     int      `toml:"max_files" flat:"packages_max_files" env:"COVE_PACKAGES_MAX_FILES" unit:"files" doc:"what one installation may bring"`
	Timeout      Duration `toml:"timeout" flat:"packages_timeout" env:"COVE_PACKAGES_TIMEOUT" doc:"wall clock of one installation, to which each megabyte that it downloads adds a second"`
}

// Tools are the servers of tools.
type Tools struct {
	File string `toml:"file" env:"COVE_TOOLS_FILE" default:"tools.json in the folder of the config file, where there is one" doc:"the file with the tool servers, in the form of Claude Desktop's and Cursor's: {\"mcpServers\": {NAME: {\"command\": ..., \"args\": [...]}}}; nobody else may be able to write to it, since cove runs what it names"`
}

// Network is where sessions may connect to at most. A session connects to nothing that was not asked for when it was made.
type Network struct {
	Allow List `toml:"allow" env:"COVE_NETWORK_ALLOW" doc:"hosts that sessions of the server may ask to reach: example.com, *.example.com, 10.1.2.0/24, or * for the public internet, each with :PORTS for others than 80 and 443; private addresses are reached where a rule names their network, and this machine's own where a rule names exactly that address"`
	Deny  List `toml:"deny" env:"COVE_NETWORK_DENY" doc:"hosts that no session of the server reaches, whatever else is allowed"`
	Bytes Size `toml:"bytes" env:"COVE_NETWORK_BYTES" zero:"no limit" doc:"what one session may send and receive together while it is in memory"`
	Pace  Size `toml:"bytes_per_second" env:"COVE_NETWORK_BYTES_PER_SECOND" zero:"no limit" doc:"what one session may send and receive together in a second"`
	Audit bool `toml:"audit" env:"COVE_NETWORK_AUDIT" doc:"write each connection that has ended, and the destinations that were refused, into the audit log"`
}

// Content says what becomes of code before it runs, and of what it emits.
type Content struct {
	Code   string `toml:"code" env:"COVE_CODE" doc:"what becomes of code on a server that calls for a second look: off, note (it is recorded with the execution), ask (serious finds wait for a user's word), refuse (they do not run); a project can have its own"`
	Redact List   `toml:"redact" env:"COVE_REDACT" doc:"what is taken out of what code on a server emits, before anybody sees or stores it: secrets (keys and tokens of known forms), guesses (what looks like the value of a password), cards, people (identity numbers, IBANs), emails; off for nothing; a project can have its own"`
	Rules  List   `toml:"code_rules" env:"COVE_CODE_RULES" doc:"rules that ask and refuse are about besides the serious ones"`
}

// Data is what libraries download when it is used.
type Data struct {
	Places List `toml:"places" env:"COVE_DATA_PLACES" default:"the libraries' own" doc:"where data of libraries comes from, each as LIBRARY=PLACE with an address or a folder: nltk=https://mirror.example/nltk_data"`
	Most   Size `toml:"most" env:"COVE_DATA_MOST" zero:"no limit" doc:"how large one item of data may be, unpacked"`
}

// Sessions are how long a session lasts, and what is kept of it.
type Sessions struct {
	Idle           Duration `toml:"idle" flat:"session_idle" env:"COVE_SESSION_IDLE" flag:"--for" zero:"for ever" doc:"how long a session that was brought into memory may be unused before it is paused"`
	Life           Duration `toml:"life" flat:"session_life" env:"COVE_SESSION_LIFE" zero:"never" doc:"after which a session of the server that nobody extends is deleted"`
	UndoDepth      int      `toml:"undo_depth" flat:"undo_depth" env:"COVE_UNDO_DEPTH" unit:"executions" doc:"how many executions of a session can be undone; each takes the room of the memory that it changed"`
	Points         int      `toml:"points" flat:"points" env:"COVE_POINTS" unit:"points" zero:"none" doc:"how many points a session of the server keeps that it can be returned to: the newest, one from before each turn"`
	PointsDisk     Size     `toml:"points_disk" flat:"points_disk" env:"COVE_POINTS_DISK" zero:"no limit" doc:"disk that the points of one session take, or what can be undone in it, beside its newest snapshot; the oldest go first, the newest stays"`
	Conversations  int      `toml:"conversations" env:"COVE_CONVERSATIONS" unit:"conversations" zero:"none" doc:"how many conversations of cove ask and cove chat keep their variables and files for --continue: those that were used last; each takes a snapshot's room on the disk"`
	CarryVariables bool     `toml:"carry_variables" flat:"carry_variables" env:"COVE_CARRY_VARIABLES" doc:"carry variables over by pickle, as far as that goes, where an upgrade of cove makes a session start anew with its files"`
	PlotStyle      bool     `toml:"plot_style" env:"COVE_PLOT_STYLE" doc:"give plots of matplotlib and Plotly the page's colours, a calm grid, short dates and twice the resolution where code does not say otherwise; false leaves them as the libraries make them"`
}

// Models are the language models, and how they are reached.
type Models struct {
	Default           string   `toml:"default" flat:"model" env:"COVE_MODEL" flag:"--model" default:"what keys and servers there are" doc:"the model for cove ask, as PROVIDER/NAME: openai/..., anthropic/..., ollama/... or replay:FILE"`
	Serve             List     `toml:"serve" flat:"serve_models" env:"COVE_SERVE_MODELS" default:"every model of the default's provider" doc:"the models that clients of the server may ask, as PROVIDER/NAME, the default first"`
	About             List     `toml:"about" env:"COVE_MODELS_ABOUT" doc:"what is known of models, each as PROVIDER/NAME context=400000 vision=on input=1.25 output=10 cached=0.125 currency=USD, all but the name optional: the tokens that it takes at once, whether it sees images, and prices for a million tokens, of which a server has one currency (USD where none is said); the cost of what is asked is computed from them, and is not said for models without prices"`
	Vision            string   `toml:"vision" env:"COVE_VISION" doc:"whether models are shown figures and image files: on, off, or auto, by what is known of a model (about, then its name); those that are not shown a figure are told in words what it shows"`
	ConnectTimeout    Duration `toml:"connect_timeout" flat:"model_connect_timeout" env:"COVE_MODEL_CONNECT_TIMEOUT" doc:"wait for a connection to a model service"`
	FirstTokenTimeout Duration `toml:"first_token_timeout" flat:"model_first_token_timeout" env:"COVE_MODEL_FIRST_TOKEN_TIMEOUT" doc:"silence of a model before its answer begins; local models may need longer to load"`
	StallTimeout      Duration `toml:"stall_timeout" flat:"model_stall_timeout" env:"COVE_MODEL_STALL_TIMEOUT" doc:"silence of a model in the middle of its answer"`
	OpenAIKey         string   `toml:"openai_api_key" flat:"openai_api_key" env:"OPENAI_API_KEY" doc:"key for openai/... models" secret:"true"`
	OpenAIBaseURL     string   `toml:"openai_base_url" flat:"openai_base_url" env:"OPENAI_BASE_URL" default:"OpenAI itself" doc:"address of any OpenAI-compatible server"`
	AnthropicKey      string   `toml:"anthropic_api_key" flat:"anthropic_api_key" env:"ANTHROPIC_API_KEY" doc:"key for anthropic/... models" secret:"true"`
	AnthropicBaseURL  string   `toml:"anthropic_base_url" flat:"anthropic_base_url" env:"ANTHROPIC_BASE_URL" default:"Anthropic itself" doc:"address of an Anthropic-compatible server"`
	OllamaHost        string   `toml:"ollama_host" flat:"ollama_host" env:"OLLAMA_HOST" default:"127.0.0.1:11434" doc:"address of an Ollama server"`
}

// Turn bounds one question to a model.
type Turn struct {
	MaxSteps     int      `toml:"max_steps" flat:"max_steps" env:"COVE_MAX_STEPS" flag:"--max-steps" unit:"executions" doc:"how often a model may run code for one question"`
	MaxTokens    int64    `toml:"max_tokens" flat:"max_tokens" env:"COVE_MAX_TOKENS" unit:"tokens" zero:"no limit" doc:"what one question may use, in and out together"`
	MaxTime      Duration `toml:"max_time" flat:"max_time" env:"COVE_MAX_TIME" zero:"no limit" doc:"wall clock of one question"`
	ApprovalWait Duration `toml:"approval_wait" env:"COVE_APPROVAL_WAIT" doc:"how long a person is waited for: to say whether a question's code may run, in conversations that ask, else the question is cancelled; to approve a call of a tool that asks, else it is refused; and to give code on a server the line that input() or getpass() asks for, else they raise EOFError"`
	ResultsWait  Duration `toml:"results_wait" env:"COVE_RESULTS_WAIT" doc:"how long code waits for its client to bring the results of functions that the code has called; then it is stopped. Its session can be paused meanwhile"`
	Titles       bool     `toml:"titles" env:"COVE_TITLES" doc:"the model names each conversation of the page after its first answer, by a short request of its own; otherwise the question's first words do"`
}

// Serve is how `cove serve` is reached, and how it begins and ends.
type Serve struct {
	Listen         List     `toml:"listen" flat:"listen" env:"COVE_LISTEN" flag:"--listen" doc:"addresses that cove serve listens on; :8700 is every address of the machine, unix:/PATH a socket"`
	AllowHosts     List     `toml:"allow_hosts" flat:"allow_hosts" env:"COVE_ALLOW_HOSTS" default:"any, but from this machine only this machine's own" doc:"names that the server is called by; .example.com stands for all that end so, * for any"`
	AllowOrigins   List     `toml:"allow_origins" flat:"allow_origins" env:"COVE_ALLOW_ORIGINS" doc:"web pages, as https://app.example.com, whose scripts may call the server"`
	TrustedProxies List     `toml:"trusted_proxies" flat:"trusted_proxies" env:"COVE_TRUSTED_PROXIES" doc:"addresses or networks of proxies that say in X-Forwarded-For whom they speak for, and in X-Forwarded-Proto whether by https"`
	TLSCert        string   `toml:"tls_cert" flat:"tls_cert" env:"COVE_TLS_CERT" doc:"file of the server's certificate, PEM; with serve.tls_key it speaks HTTPS"`
	TLSKey         string   `toml:"tls_key" flat:"tls_key" env:"COVE_TLS_KEY" doc:"file of the certificate's key, PEM"`
	MetricsListen  string   `toml:"metrics_listen" flat:"metrics_listen" env:"COVE_METRICS_LISTEN" default:"only /metrics with the API, for keys of the server's admins" doc:"address for Prometheus, without keys"`
	DebugListen    string   `toml:"debug_listen" flat:"debug_listen" env:"COVE_DEBUG_LISTEN" doc:"address of this machine for pprof"`
	DocsPublic     bool     `toml:"docs_public" flat:"docs_public" env:"COVE_DOCS_PUBLIC" doc:"serve the pages that document the API without a key"`
	Page           bool     `toml:"page" env:"COVE_PAGE" doc:"serve the web page at /; without it there are the APIs alone"`
	Sharing        bool     `toml:"sharing" env:"COVE_SHARING" doc:"let users make links that show a conversation to all who have the link, without a key; false switches off those that were made, too"`
	Ports          string   `toml:"ports" env:"COVE_PORTS" default:"http://localhost, where the server listens on this machine alone" doc:"where browsers reach servers that run in sessions, as https://ports.example.com: names below it lead to this server, with a certificate for them; off: nowhere but by paths"`
	PageScripts    bool     `toml:"page_scripts" env:"COVE_PAGE_SCRIPTS" doc:"let users of the page run HTML with scripts that code made, in a frame that reaches nothing of the server's, when they ask for it"`
	FirstKey       string   `toml:"first_key" flat:"first_key" env:"COVE_FIRST_KEY" default:"a random one" doc:"the text of the key that cove serve makes when there is none; cove key create on any database prints such a text" secret:"true"`
	DrainTimeout   Duration `toml:"drain_timeout" flat:"drain_timeout" env:"COVE_DRAIN_TIMEOUT" doc:"how long running work may take to end when the server is asked to end"`
	Pool           int      `toml:"pool" flat:"pool" env:"COVE_POOL" unit:"sandboxes" zero:"none" doc:"sandboxes that are kept ready for new sessions, as far as a quarter of the free memory allows; and up to two empty ones, for sessions that are resumed or forked"`
	PoolMost       int      `toml:"pool_most" flat:"pool_most" env:"COVE_POOL_MOST" unit:"sandboxes" zero:"no limit but a quarter of the free memory" doc:"sandboxes that are kept ready at most, for a quarter of an hour after as many sessions were begun within a minute"`
}

// OAuth says whose access tokens /mcp takes beside keys.
type OAuth struct {
	Issuer    string `toml:"issuer" env:"COVE_OAUTH_ISSUER" default:"none: keys alone" doc:"the authorization server whose access tokens /mcp takes beside keys, exactly as it calls itself: https://id.example.com/realms/staff"`
	Resource  string `toml:"resource" env:"COVE_OAUTH_RESOURCE" default:"where the server listens, on this machine alone" doc:"the address of /mcp as clients have it, as https://cove.example.com/mcp; clients ask for tokens for it"`
	Audience  string `toml:"audience" env:"COVE_OAUTH_AUDIENCE" default:"oauth.resource" doc:"the audience that tokens must have, where the authorization server writes another than the address that it was asked for"`
	Scope     string `toml:"scope" env:"COVE_OAUTH_SCOPE" doc:"the scope that tokens must have, which clients are told to ask for; none: tokens need none"`
	Claim     string `toml:"claim" env:"COVE_OAUTH_CLAIM" doc:"the claim that names a token's holder, as cove key create --holder does; it must stay the same person's for ever, as sub does, and email counts only where email_verified is true"`
	Newcomers string `toml:"newcomers" env:"COVE_OAUTH_NEWCOMERS" default:"nobody: an admin links each holder" doc:"PROJECT:ROLE, where the role is member or viewer: holders whom nobody has linked become users of that project"`
}

// Limits bound what all users of a server have together, and what one request may bring.
type Limits struct {
	Sessions                 int     `toml:"sessions" flat:"max_sessions" env:"COVE_MAX_SESSIONS" unit:"sessions" zero:"no limit but the memory" doc:"sessions in memory at once; what memory there is bounds them in any case"`
	SessionMemory            Size    `toml:"session_memory" flat:"max_session_memory" env:"COVE_MAX_SESSION_MEMORY" zero:"no limit" default:"half of the machine's" doc:"memory that a session of the server may ask for"`
	Executions               int     `toml:"executions" flat:"max_executions" env:"COVE_MAX_EXECUTIONS" unit:"executions" zero:"no limit" default:"twice the processors" doc:"executions that run at once; further ones wait"`
	Queue                    int     `toml:"queue" flat:"max_queue" env:"COVE_MAX_QUEUE" unit:"executions" doc:"executions that may wait for one kernel"`
	Upload                   Size    `toml:"upload" flat:"max_upload" env:"COVE_MAX_UPLOAD" doc:"one file that is sent to the server"`
	Volume                   Size    `toml:"volume" env:"COVE_MAX_VOLUME" zero:"no limit" doc:"what one volume may hold; sessions that have one when it comes to hold more are ended"`
	Output                   Size    `toml:"output" flat:"server_output" env:"COVE_SERVER_OUTPUT" doc:"output that the server keeps of one execution"`
	RequestsAtOnce           int     `toml:"requests_at_once" flat:"requests_at_once" env:"COVE_REQUESTS_AT_ONCE" unit:"requests" doc:"requests and streams that are served at the same time"`
	RequestsPerSecond        float64 `toml:"requests_per_second" flat:"requests_per_second" env:"COVE_REQUESTS_PER_SECOND" unit:"per second" zero:"no limit" doc:"requests that one key may make"`
	ProjectRequestsPerSecond float64 `toml:"project_requests_per_second" flat:"project_requests_per_second" env:"COVE_PROJECT_REQUESTS_PER_SECOND" unit:"per second" zero:"no limit" doc:"requests that all keys of a project may make together"`
}

// Quota is what projects and keys may use that have no quota of their own.
type Quota struct {
	Project ProjectQuota `toml:"project"`
	Key     KeyQuota     `toml:"key"`
}

// ProjectQuota is what a project may use.
type ProjectQuota struct {
	Sessions   int     `toml:"sessions" flat:"project_sessions" env:"COVE_PROJECT_SESSIONS" unit:"sessions" zero:"no limit" doc:"live sessions of a project"`
	Executions int     `toml:"executions" flat:"project_executions" env:"COVE_PROJECT_EXECUTIONS" unit:"executions" zero:"no limit" doc:"running executions of a project"`
	CPUSeconds float64 `toml:"cpu_seconds" flat:"project_cpu_seconds" env:"COVE_PROJECT_CPU_SECONDS" unit:"seconds" zero:"no limit" doc:"processor time of a project in a day (UTC)"`
	Disk       Size    `toml:"disk" flat:"project_disk" env:"COVE_PROJECT_DISK" zero:"no limit" doc:"files and paused sessions of a project"`
	Tokens     int64   `toml:"tokens" flat:"project_tokens" env:"COVE_PROJECT_TOKENS" unit:"tokens" zero:"no limit" doc:"tokens of a project in a day"`
}

// KeyQuota is what one key may use.
type KeyQuota struct {
	Sessions   int     `toml:"sessions" flat:"key_sessions" env:"COVE_KEY_SESSIONS" unit:"sessions" zero:"no limit" doc:"live sessions of one key"`
	Executions int     `toml:"executions" flat:"key_executions" env:"COVE_KEY_EXECUTIONS" unit:"executions" zero:"no limit" doc:"running executions of one key"`
	CPUSeconds float64 `toml:"cpu_seconds" flat:"key_cpu_seconds" env:"COVE_KEY_CPU_SECONDS" unit:"seconds" zero:"no limit" doc:"processor time of one key in a day"`
	Tokens     int64   `toml:"tokens" flat:"key_tokens" env:"COVE_KEY_TOKENS" unit:"tokens" zero:"no limit" doc:"tokens of one key in a day"`
}

// Store is the database, and how long it keeps what.
type Store struct {
	Database       string   `toml:"database" flat:"database" env:"COVE_DATABASE" flag:"--database" default:"cove.db in the data folder" doc:"keeps history, keys and sessions' records: the path of an SQLite file, or postgres://..." secret:"true"`
	History        bool     `toml:"history" flat:"history" env:"COVE_HISTORY" flag:"--no-history" doc:"keep what cove ask and cove chat do, for cove history"`
	Retention      Duration `toml:"retention" flat:"retention" env:"COVE_RETENTION" zero:"for ever" doc:"how long conversations and executions are kept that nobody uses"`
	AuditRetention Duration `toml:"audit_retention" flat:"audit_retention" env:"COVE_AUDIT_RETENTION" zero:"for ever" doc:"how long rows of the audit log are kept"`
}

// Encryption is how what is kept is encrypted.
type Encryption struct {
	Key    string `toml:"key" env:"COVE_ENCRYPTION_KEY" default:"nothing is encrypted" doc:"the key that data is encrypted with, as cove encryption key new makes it; further lines are keys that data was encrypted with before" secret:"true"`
	Memory string `toml:"memory" env:"COVE_ENCRYPTION_MEMORY" default:"/dev/shm" doc:"a folder in memory, where the state of a sandbox is for the moment in which it is saved or restored; a folder that is not in memory has to be on an encrypted disk"`
}

// Backup is when and where backups are made, and how an object storage is reached that keeps them.
type Backup struct {
	To             string   `toml:"to" env:"COVE_BACKUP_TO" default:"none are made" doc:"folder, or s3://BUCKET/PREFIX, where a server puts a backup whenever one is due"`
	Every          Duration `toml:"every" env:"COVE_BACKUP_EVERY" doc:"time from one backup of a server to the next"`
	Keep           int      `toml:"keep" env:"COVE_BACKUP_KEEP" unit:"backups" zero:"all" doc:"how many backups of its own a server keeps: the newest. Others in the same place stay"`
	Verify         bool     `toml:"verify" env:"COVE_BACKUP_VERIFY" doc:"read each backup back and restore it into a temporary folder, before older ones are removed"`
	S3Endpoint     string   `toml:"s3_endpoint" env:"COVE_BACKUP_S3_ENDPOINT" default:"AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or Amazon's" doc:"address of the object storage, as https://minio.example.com:9000; http:// alone does without TLS"`
	S3Region       string   `toml:"s3_region" env:"COVE_BACKUP_S3_REGION" default:"AWS_REGION, AWS_DEFAULT_REGION, or what the storage says" doc:"region of the buckets"`
	S3PathStyle    bool     `toml:"s3_path_style" env:"COVE_BACKUP_S3_PATH_STYLE" doc:"write buckets as ENDPOINT/BUCKET instead of BUCKET.ENDPOINT, also where the endpoint is a name of Amazon's, Google's or Alibaba's; others are always written so"`
	S3AccessKey    string   `toml:"s3_access_key" env:"COVE_BACKUP_S3_ACCESS_KEY" default:"AWS_ACCESS_KEY_ID, ~/.aws/credentials, or the role of the pod" doc:"name of the credential for the object storage" secret:"true"`
	S3SecretKey    string   `toml:"s3_secret_key" env:"COVE_BACKUP_S3_SECRET_KEY" default:"AWS_SECRET_ACCESS_KEY and so on" doc:"secret of that credential" secret:"true"`
	S3SessionToken string   `toml:"s3_session_token" env:"COVE_BACKUP_S3_SESSION_TOKEN" doc:"token of that credential, where it is one for a while" secret:"true"`
}

// Log is what `cove serve` logs.
type Log struct {
	Format string `toml:"format" flat:"log_format" env:"COVE_LOG_FORMAT" flag:"--json" doc:"text or json"`
	Level  string `toml:"level" flat:"log_level" env:"COVE_LOG_LEVEL" flag:"--quiet" doc:"debug, info, warn or error"`
}

// Terminal is how commands talk to a person.
type Terminal struct {
	Language string `toml:"language" env:"COVE_LANG" default:"that of the locale: LC_ALL, LC_MESSAGES or LANG, and LANGUAGE" doc:"the language of messages and help: en, or zh for simplified Chinese. What programs read stays English: JSON, logs, answers of a server"`
}

// Remote is the server that commands use instead of this machine.
type Remote struct {
	Server string `toml:"server" flat:"server" env:"COVE_SERVER" flag:"--server" doc:"address of a cove server that cove ask, chat, history and the like use instead of this machine"`
	Key    string `toml:"key" flat:"key" env:"COVE_KEY" flag:"--key" doc:"the key for that server" secret:"true"`
}
