/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the classifier share. The way of a byte: feed (classify_feed.c) cuts complete
 * lines, which are searched for the literals of all signatures at once (classify_block.c); a line
 * with a hit is cleaned and its prefix read (classify_line.c), the signatures confirm it
 * (classify_match.c), and what they mean is noted (classify_note.c) in a bounded state; the verdict
 * (classify_verdict.c) is a reading of that state. */
#ifndef POLICIES_CLASSIFY_PRIVATE_H
#define POLICIES_CLASSIFY_PRIVATE_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <hs/hs.h>
#include <pcre2.h>
#include <string.h>

#include "oomretry/classify.h"

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* FNV by eight bytes at a time: a multiplication for each byte would be most of a frame's price. */
static inline uint64_t oom_hash(uint64_t hash, const char *bytes, size_t length)
{
    uint64_t word;

    for (; length >= sizeof(word); bytes += sizeof(word), length -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    for (; length > 0; bytes++, length--)
        hash = (hash ^ (unsigned char)*bytes) * UINT64_C(0x100000001b3);
    return hash;
}

/* The low bits of such a hash tell little about the last bytes; this spreads them over all. */
static inline uint64_t oom_hash_spread(uint64_t hash)
{
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* --- signatures ----------------------------------------------------------------------------- */

enum sig_kind {
    SIG_OOM,        /* memory ran out */
    SIG_WRAPPER,    /* repeats or names an OOM that another line describes better */
    SIG_SUSPECT,    /* fits an OOM, decides only with other evidence */
    SIG_LOOK_ALIKE, /* looks like an OOM and is none: nothing else on the line counts */
    SIG_RECOVERED,  /* says that an OOM was caught; progress behind it proves that */
    SIG_DETAIL,     /* adds numbers, phase or domain to the OOM just before it */
    SIG_SECONDARY,  /* a consequence of some failure */
    SIG_FAILURE,    /* a failure that is not memory */
    SIG_PROGRESS,   /* training goes on */
    SIG_FINISHED,   /* the work is done */
    SIG_RESTART,    /* another attempt begins in the same log */
    SIG_PHASE,      /* a framework says what it does now */
    SIG_CONTEXT,    /* a line inside a traceback that tells the phase */
    SIG_QUOTE,      /* text of data or chat begins or ends: what it holds is not the job's */
    SIG_FRAMEWORK,  /* betrays the framework */
    SIG_TRACEBACK,  /* a traceback begins */
    SIG_FRAME,      /* one frame of it, as Python prints them */
};

enum sig_edge { EDGE_BEGIN, EDGE_END, EDGE_TOGGLE };

#define SIG_NUMBERS_MAX 6

struct signature {
    const char *id; /* "family.name", owned by the set */
    json_t *json;   /* borrowed from the set's documents */
    char family[48];
    enum sig_kind kind;
    json_t *with;    /* array or NULL: a matching line holds one of these too */
    json_t *without; /* array or NULL: and none of these */
    pcre2_code *match;
    pcre2_code *unless;
    pcre2_code *numbers[SIG_NUMBERS_MAX];
    size_t number_count;
    bool number_groups; /* some expression names a group that is read */
    enum oom_domain domain;
    enum oom_phase phase;
    int phase_strength;
    enum oom_direction direction;
    double confidence;
    enum sig_edge edge;
    int within_lines;
    const char *of;        /* detail: only behind signatures whose id starts so */
    const char *framework; /* framework: its name */
    int priority;          /* framework: the highest wins */
    const char *why;       /* one sentence */
    bool settles;          /* oom: those before it that were caught are told by this one;
                              look_alike: so is a name of the failure that came before */
    bool traceback;        /* failure: only as the last line of a traceback */
    bool weak;             /* progress: counts only when a caught OOM announced itself */
    bool verbatim;         /* failure: the line itself says best what failed */
    bool comment;          /* memory: counts on a line that reads like a comment too */
    bool own;              /* restart: the framework's own, with the same settings */
    uint16_t context_rule; /* context: the frame rule that stands for it, index + 1 */
    bool kill;             /* the kernel or the scheduler killed something: maybe a helper */
    bool shared;           /* oom: of a whole node, told to each job there */
    bool kernel;           /* oom: of a whole node's kernel: maybe not of this job */
    bool root;             /* failure: no other process's end leads to it */
    bool died;             /* secondary: a process of this job has ended */
};

/* How strongly something names the phase. Of several frames the strongest decides, among equals
 * the innermost. */
enum {
    STRENGTH_NONE = 0,
    STRENGTH_MARKER = 1,    /* the last marker in the log */
    STRENGTH_WORK = 2,      /* a forward function: everything contains some */
    STRENGTH_STEP = 3,      /* backward, optimizer: may contain forward (recomputation) */
    STRENGTH_SCOPE = 4,     /* log-probs, generation, checkpoint: contain all of the above */
    STRENGTH_OUTER = 5,     /* initialisation, evaluation: contain scopes */
    STRENGTH_OVERRIDE = 6,  /* decides whatever surrounds it */
    STRENGTH_SIGNATURE = 7, /* the message itself */
};

struct frame_rule {
    const char *function; /* exact name, or NULL: any function of the file */
    const char *file;     /* part of the path, or NULL: any file */
    enum oom_phase phase;
    int strength;
    enum oom_domain domain; /* whose memory, when the message does not say; NONE mostly */
    bool reset;             /* what surrounds this frame says nothing about what is inside */
    bool covers;            /* decides over frames of the same strength inside it */
    enum oom_direction direction;
    uint16_t next; /* hash chain, index + 1 */
};

#define FRAME_BUCKETS 1024
#define FRAME_MEMO    2048

struct frame_memo {
    uint64_t key;
    uint16_t rule;
};

struct literal {
    char *text;
    size_t length;
    bool nocase;
    uint32_t first; /* into literal_sigs */
    uint32_t count;
    bool only_progress;     /* all its signatures are progress: skipped while nobody waits */
    bool only_look_alike;   /* all are look-alikes: not searched for ever */
    bool look_alike;        /* one is */
    bool framework;         /* one betrays a framework */
    size_t fragment_offset; /* the part of it that is searched */
    size_t fragment_length;
};

struct fragment {
    uint32_t first; /* into literals */
    uint32_t count;
};

struct oom_signatures {
    json_t *documents; /* array of {"name", "document"} */
    struct signature *items;
    size_t count;
    struct frame_rule *rules;
    size_t rule_count;
    uint16_t rule_buckets[FRAME_BUCKETS]; /* by function name; [0] heads the rules without one */
    uint16_t any_function;
    struct literal *literals;
    size_t literal_count;
    uint16_t *literal_sigs;
    size_t literal_sig_count;
    struct fragment *fragments;
    size_t fragment_count;
    hs_database_t *database;    /* all fragments */
    hs_database_t *calm;        /* without those that only progress needs */
    hs_database_t *frameworks;  /* only those that betray a framework */
    hs_database_t *look_alikes; /* only those of look-alikes */
    pcre2_match_context *match_context;
    bool compiled;
};

#define SIGNATURES_MAX  4000
#define FRAME_RULES_MAX 8000

extern const char *const oom_sig_kinds[]; /* by kind; ends with NULL */
const char *oom_sig_kind_name(enum sig_kind kind);
int oom_sig_kind_parse(const char *name, enum sig_kind *out);
int oom_strength_parse(const char *name, int *out);

/* classify_schema.c: adds signatures and frame rules of one document. */
int oom_schema_add(struct oom_signatures *set, json_t *document, const char *name,
                   struct oom_error *err);

/* classify_fragments.c */
int oom_fragments_choose(struct oom_signatures *set);
#define FRAGMENT_MAX 8 /* bytes */

enum fragments {
    FRAGMENTS_ALL,
    FRAGMENTS_CALM,
    FRAGMENTS_ESSENTIAL,
    FRAGMENTS_FRAMEWORKS,
    FRAGMENTS_LOOK_ALIKES,
};
int oom_fragments_compile(const struct oom_signatures *set, enum fragments which,
                          hs_database_t **out, struct oom_error *err);
/* Is the literal, whose fragment ends at `fragment_end`, there as a whole? */
bool oom_literal_is_at(const struct literal *literal, const char *bytes, size_t length,
                       size_t fragment_end);

/* classify_compile.c */
int oom_signatures_compile_literals(struct oom_signatures *set, struct oom_error *err);

/* Does this signature hold for a cleaned line? `expressions` only, without its literals. */
bool oom_signature_confirms(const struct oom_signatures *set, const struct signature *sig,
                            pcre2_match_data *scratch, const char *text, size_t length);
bool oom_regex_matches(const struct oom_signatures *set, const pcre2_code *code,
                       pcre2_match_data *scratch, const char *text, size_t length);

/* --- lines ---------------------------------------------------------------------------------- */

#define LINE_MAX_BYTES 8192 /* of a line that are looked at: around the hit */
#define TEXT_MAX_BYTES 600  /* of a line that are kept */
#define NODE_MAX_BYTES 64

/* A line (or the piece of one between carriage returns) without colours, and what its prefixes
 * say. */
struct line_view {
    const char *text; /* cleaned, not terminated */
    size_t length;
    const char *body; /* behind the prefixes */
    size_t body_length;
    uint64_t voice; /* who speaks: same prefix, same number; 0 without one */
    int rank;
    char node[NODE_MAX_BYTES];
    bool shell; /* echoed commands, comments, greps: text about text */
};

/* Takes terminal control and NUL bytes out of [raw, raw+length), but no end of a line; returns how
 * much is left. `out` has room for `length` bytes and may be `raw`. */
size_t oom_bytes_clean(const char *raw, size_t length, char *out);
/* Takes terminal control out of a text in place. */
void oom_line_strip(char *text);
/* classify_unwrap.c: leaves of {"log":"...","stream":"stderr"} the line that was logged. */
void oom_line_unwrap(struct line_view *view);
/* classify_prefix.c: reads the prefixes of a cleaned line. */
void oom_line_speaker(struct line_view *view);

/* classify_data.c: does the line hold a record of data ({"prompt": ...})? */
bool oom_line_is_data(const struct line_view *view);

/* The number of at most seven digits at the start of [at, end), or -1; `after`: where it ends. */
int oom_digits_read(const char *at, const char *end, const char **after);
bool oom_digits_only(const char *at, size_t n);

/* classify_files.c: a file's name without directories, the rank that it states ("rank_3.log",
 * ".../attempt_0/3/stderr.log"), and the attempt, from 0; or -1. */
const char *oom_file_base(const char *file);
int oom_file_rank(const char *file);
int oom_file_attempt(const char *file, size_t *place);

/* Wall clock of a line as a number that orders lines of one run, 0 when it states none. */
uint64_t oom_line_time(const char *text, size_t length);

/* --- numbers -------------------------------------------------------------------------------- */

/* "1.43 GiB", "954.00 MiB", "92198188384 bytes", "165.586182MB", "16G", "4096": binary units.
 * OOM_UNSTATED when it is no size or does not fit. */
int64_t oom_size_parse(const char *text, size_t length);

/* Fills what the signature's expressions capture and is not stated yet. `method` (64 bytes, may
 * be NULL) gets the group of that name, rank and node likewise. */
struct captures {
    struct oom_numbers numbers;
    int64_t reserved_total_bytes;
    char method[96];
    char node[NODE_MAX_BYTES];
    int rank;
    int64_t count;
};
void oom_captures_init(struct captures *captures);
void oom_captures_take(const struct oom_signatures *set, const struct signature *sig,
                       pcre2_match_data *scratch, const char *text, size_t length,
                       struct captures *captures);

/* --- frames --------------------------------------------------------------------------------- */

#define FRAMES_MAX 64

/* The traceback that a voice is printing, as indices of the rules that its frames met. */
struct traceback {
    uint16_t rule[FRAMES_MAX]; /* index + 1 */
    uint8_t count;
    uint32_t depth; /* frames seen, with and without a rule */
    int64_t first_line;
    int64_t last_line;
    bool begun; /* where it began was seen: no frame before first_line belongs to it */
};

struct phase_guess {
    enum oom_phase phase;
    int strength;
    enum oom_direction direction;
    enum oom_domain domain;
};

void oom_traceback_reset(struct traceback *traceback);
/* One more frame; after more than `fresh_lines` without any it begins another traceback. */
void oom_traceback_push(struct traceback *traceback, uint16_t rule, int64_t line,
                        int64_t fresh_lines);
void oom_frame_rules_index(struct oom_signatures *set);
/* The rule for a function in a file; 0 for none. file may be NULL (a remote method's name). */
uint16_t oom_frame_rule_find(const struct oom_signatures *set, const char *function, size_t length,
                             const char *file, size_t file_length);
/* Reads the first `File "...", line N, in f`: its rule, 0 for none, and where to read on; NULL
 * when there is no frame. */
const char *oom_frame_parse(struct oom_classifier *classifier, const char *text, size_t length,
                            uint16_t *rule);
/* The same for `file.py:N in f`, `file.py:N, in C.f(...)` and `file.py in f(...)`: rich and
 * IPython. */
bool oom_frame_parse_bare(struct oom_classifier *classifier, const char *text, size_t length,
                          uint16_t *rule);
struct phase_guess oom_traceback_phase(const struct oom_signatures *set,
                                       const struct traceback *traceback);

/* --- state ---------------------------------------------------------------------------------- */

#define STREAMS_MAX         4096
#define PENDING_MAX         96
#define DISCOUNTED_MAX      48
#define FAILURES_MAX        16
#define VOICES_MAX          1024
#define WINDOW_BYTES        1600
#define WINDOW_LINES_BEFORE 8
#define WINDOW_LINES_AFTER  4

#define OOM_OF_EARLIER "of an earlier attempt: the last one counts"

struct event {
    const struct signature *sig;
    int stream;
    int64_t line;
    uint64_t order; /* of noting, over all streams */
    uint64_t time;
    uint64_t voice;
    int rank;
    char node[NODE_MAX_BYTES];
    char *text;
    char *before; /* lines of the log before it, as they are; NULL: none kept */
    char *after;
    int after_lines; /* still wanted */
    struct oom_numbers numbers;
    int64_t count; /* how often it was seen */
    enum oom_phase phase;
    int phase_strength;
    bool phase_sure; /* nothing that was not read could change it */
    enum oom_direction direction;
    enum oom_domain domain;
    bool hinted;       /* a line said that it was caught */
    int progress;      /* progress lines behind it */
    bool after_finish; /* noted when the work was done */
    char why[160];     /* discounted: why it does not count */
};

struct voice {
    uint64_t id;
    uint64_t used;
    struct traceback traceback;
    bool fenced;  /* between two ``` */
    bool quoting; /* between the marks of a chat template */
    int64_t quote_line;
    int told_rank; /* whose failure it told last, and where */
    int64_t told_line;
};

/* How the bytes of a log tell characters (classify_encoding.c). */
enum encoding {
    ENCODING_UNKNOWN, /* not enough was read to tell */
    ENCODING_BYTES,   /* ASCII and whatever else there may be */
    ENCODING_UTF16_LE,
    ENCODING_UTF16_BE,
};

#define ENCODING_HEAD_BYTES 8 /* tell it */

struct encoding_state {
    enum encoding encoding;
    unsigned char head[ENCODING_HEAD_BYTES]; /* the first bytes, or a half of a unit */
    uint8_t head_length;
    uint16_t high_surrogate; /* 0: none waits for its other half */
};

/* The first line of a frame that rich folded, until the next one completes it. */
#define FOLDED_FRAME_BYTES 400

struct folded_frame {
    char text[FOLDED_FRAME_BYTES];
    size_t length; /* 0: none */
    uint64_t voice;
    int64_t line;
};

struct stream {
    char *file;
    int file_rank;
    int attempt;          /* that its name states; -1: none */
    size_t attempt_place; /* of the part of the name that does */
    bool lived;           /* something happened in it */
    int continued_by;     /* the stream of the next part of the same log; -1: none */
    struct encoding_state encoding;
    int64_t line; /* number of the first line of what is fed next */
    char *carry;  /* an incomplete last line */
    size_t carry_length;
    size_t carry_size;
    char *tail; /* the end of the last block, for the lines before an event */
    size_t tail_length;
    struct traceback recent; /* of any voice */
    struct folded_frame folded;
    enum oom_phase phase; /* by markers */
    const struct signature *phase_sig;
    int64_t phase_line;
    int phase_steps; /* behind it */
    enum oom_phase ended_phase;
    int64_t ended_line;
    int waiting;       /* pending events of this stream */
    int wants_after;   /* events that want the lines behind them */
    bool restarted;    /* a restart marker, and nothing that proves a new attempt yet */
    bool restart_weak; /* only progress proves it */
    bool quoting;      /* some voice began to quote */
    int64_t restart_line;
    int64_t finished_line;
    /* What precedes the bytes that are fed is only skimmed, or unknown (classify_tail.c). */
    bool partial;
    bool skimming;
    int unproved;             /* progress lines that still have to prove it survived */
    bool early;               /* a failure came before they did */
    int64_t end_line;         /* the first line that is read as a whole */
    int64_t failure_line;     /* the first failure of memory behind it; 0: none */
    int64_t phase_known_line; /* a marker of phases behind it; 0: none */
};

struct tally {
    int64_t count;
    int64_t first_line;
    int64_t last_line;
    int first_stream;
    int last_stream;
    int files;           /* that hold some */
    struct event *first; /* of secondary, suspect and look-alike lines: what it said */
};

struct oom_classifier {
    const struct oom_signatures *set;
    hs_scratch_t *scratch;
    hs_scratch_t *line_scratch; /* for one line, in the middle of a block's search */
    hs_database_t *essential;   /* without what only look-alikes need; NULL: not needed so far */
    pcre2_match_data *match_data;
    struct stream *streams;
    int stream_count;
    struct event *pending[PENDING_MAX];
    size_t pending_count;
    struct event *discounted[DISCOUNTED_MAX];
    size_t discounted_count;
    int64_t discounted_more;
    struct event *failures[FAILURES_MAX];
    size_t failure_count;
    struct tally *tallies; /* one a signature */
    struct voice *voices;
    struct frame_memo *frame_memo;
    size_t voice_count;
    const struct signature *framework;
    uint64_t clock;
    int own_restarts;    /* of the framework, each after it had run out */
    bool ran_out;        /* since the last of them */
    int64_t look_alikes; /* pieces that only a look-alike proposed, while they are searched */
    bool broken;         /* memory ran out while noting */
    char *clean; /* of classify_feed.c: a portion without terminal control; NULL: none was needed */
    char *narrow; /* of classify_encoding.c: a portion of UTF-16 in UTF-8; NULL: none was needed */
};

/* An OOM that nothing announced as caught counts until this many progress lines follow it: other
 * ranks flush a few behind a dying one. */
#define PROGRESS_PROVES 4
/* A voice's own traceback may be interleaved with thousands of lines of others. */
#define OWN_FRESH_LINES 20000
/* Frames of another voice count for a line without a prefix of its own while they are fresh. */
#define FRESH_LINES 60

#define HITS_MAX 64

/* Signatures proposed for a line, in the order of the set. */
struct hits {
    uint16_t sig[HITS_MAX];
    size_t count;
    uint32_t kinds; /* 1 << kind of each */
};

/* classify_hits.c */
void oom_hits_clear(struct hits *hits);
void oom_hits_add(struct hits *hits, uint16_t sig, enum sig_kind kind);
/* The look-alikes that a line proposes, whatever the search of its block is for. */
void oom_hits_add_look_alikes(struct oom_classifier *classifier, const char *text, size_t length,
                              struct hits *hits);

/* A block of whole lines that is being scanned. */
struct block {
    struct oom_classifier *classifier;
    struct stream *stream;
    const char *bytes;
    size_t length;
    size_t counted;     /* lines are counted up to here */
    int64_t line;       /* the number of the line at `counted` */
    size_t piece_start; /* the piece under collection; SIZE_MAX: none */
    size_t piece_end;
    size_t from;      /* where the search began */
    size_t done;      /* what ends up to here has been found before */
    bool calm;        /* progress is not searched */
    struct hits hits; /* signatures proposed for the piece */
};

/* classify_block.c */
int64_t oom_block_line_at(struct block *block, size_t offset);
/* Complete lines, without terminal control. */
int oom_block_scan(struct oom_classifier *classifier, struct stream *stream, const char *bytes,
                   size_t length);

/* classify_note.c: one piece of a line with the literals that were found in it. */
void oom_piece_note(struct block *block);
/* classify_note_phase.c: the line at `at` of the block completes the frame that waits for it. */
void oom_note_folded(struct block *block, size_t at);

/* The stream that a log is read from now: it may be in parts. */
int oom_stream_now(const struct oom_classifier *classifier, int stream);

/* classify_events.c */
struct event *oom_sighting_new(struct block *block, const struct signature *sig,
                               const struct line_view *view, int64_t line);
void oom_sighting_free(struct event *event);
/* Keeps the lines around it and, when the line states no time, that of the lines before. */
void oom_sighting_take_surroundings(struct block *block, struct event *event);
void oom_events_add_pending(struct oom_classifier *classifier, struct event *event);
void oom_events_discount(struct oom_classifier *classifier, size_t pending_index, const char *why);
void oom_events_add_discounted(struct oom_classifier *classifier, struct event *event);
void oom_events_add_failure(struct oom_classifier *classifier, struct event *event);
/* Frees one that is in the list no more; nobody waits to see whether it was survived. */
void oom_events_drop_failure(struct oom_classifier *classifier, struct event *failure);
void oom_events_feed_after(struct oom_classifier *classifier, struct stream *stream,
                           const char *bytes, size_t length);

/* classify_proof.c */
void oom_events_progress(struct oom_classifier *classifier, struct stream *stream, bool weak,
                         int64_t line);
void oom_events_finished(struct oom_classifier *classifier, struct stream *stream, int64_t line);
/* `settling` tells what the caught events before it began; names of it go away. */
void oom_events_settle(struct oom_classifier *classifier, struct event *settling);
void oom_events_void_names(struct oom_classifier *classifier, int stream, int64_t line);
/* The framework begins again by itself, with the settings that it had. */
void oom_events_own_restart(struct oom_classifier *classifier);
void oom_events_alive(struct oom_classifier *classifier, struct stream *stream);

/* classify_tail.c: logs of which only the end is read as a whole. */
void oom_tail_failure(struct stream *stream, const struct event *event);
void oom_tail_phase(struct stream *stream, int64_t line);
/* Is a phase of this strength, told by `traceback` (may be NULL) or a marker, that of a whole
 * reading? */
bool oom_tail_phase_is_sure(const struct stream *stream, const struct traceback *traceback,
                            int strength, int64_t line);
int oom_tail_begin(struct oom_classifier *classifier, int stream);
/* What to search in what is skimmed; NULL: nothing. */
const hs_database_t *oom_tail_frameworks(const struct oom_classifier *classifier);

/* classify_feed.c */
int oom_stream_feed(struct oom_classifier *classifier, int stream, const void *bytes,
                    size_t length);
int oom_text_feed(struct oom_classifier *classifier, struct stream *stream, const char *bytes,
                  size_t length);
/* Scans an incomplete last line as it is. */
int oom_carry_flush(struct oom_classifier *classifier, struct stream *stream);

/* classify_encoding.c: hands the bytes of a log on to oom_text_feed, UTF-16 as UTF-8. */
int oom_encoding_feed(struct oom_classifier *classifier, struct stream *stream, const void *from,
                      size_t length);

/* classify_objection.c */
struct ending {
    bool known;        /* something is known at all */
    bool well;         /* it ended well, as far as exit data say */
    bool running;      /* it has not ended */
    bool killed;       /* the kernel killed for memory: cgroup, kernel log or scheduler */
    bool by_kill;      /* by SIGKILL, whoever sent it */
    bool by_scheduler; /* time limit, preemption, a failed node */
    bool finished;
    const char *kill_source;
};

struct ending oom_ending_read(const struct oom_exit *exit_data);
bool oom_event_is_of_earlier(const struct oom_classifier *classifier, const struct event *event);
/* NULL, or why this event does not make the attempt a failure of memory. */
const char *oom_objection(const struct oom_classifier *classifier, const struct event *event,
                          const struct ending *end);

/* classify_wrapped.c: reads on behind a message that was folded. */
void oom_wrapped_complete(struct oom_classifier *classifier, struct event *event);
/* Does the line begin a frame that goes on in the next one? Keeps its text. */
bool oom_wrapped_frame_begin(struct folded_frame *folded, const struct line_view *view);
/* Reads the frame with the line behind it: its rule, 0 for none. */
bool oom_wrapped_frame_end(struct oom_classifier *classifier, const struct folded_frame *folded,
                           const struct line_view *view, uint16_t *rule);

/* classify_summary.c: the verdict in one sentence. */
void oom_summary_of_oom(struct oom_incident *incident);
void oom_summary_of_failure(const struct signature *sig, struct oom_incident *incident);
const char *oom_why(const struct signature *sig, const char *otherwise);

/* classify_voice.c */
struct voice *oom_voice_get(struct oom_classifier *classifier, int stream, uint64_t id);

#endif
