/* SPDX-License-Identifier: Apache-2.0
 *
 * Ray's records and answers, entrypoints, options, packages; and the Jobs API spoken with a small
 * HTTP server that answers as releases of Ray do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <archive.h>
#include <archive_entry.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/lib/jsonget.h"
#include "agent/sched/ray.h"

static json_t *from_text(const char *text)
{
    json_error_t where;
    json_t *json = json_loads(text, 0, &where);

    if (!json)
        print_error("%s\n", where.text);
    assert_non_null(json);
    return json;
}

/* --- options ------------------------------------------------------------------------------------
 */

static void options(void **state)
{
    struct ray_options o;
    struct oom_error err = {""};

    (void)state;
    assert_int_equal(ray_options_parse("https://head:8265/ token=/etc/t  retry=relax owner=alice "
                                       "tls=insecure",
                                       &o, &err),
                     0);
    assert_string_equal(o.url, "https://head:8265");
    assert_string_equal(o.token_file, "/etc/t");
    assert_string_equal(o.retry, "relax");
    assert_string_equal(o.owner, "alice");
    assert_string_equal(o.temp, "/tmp/ray");
    assert_true(o.insecure);
    assert_int_equal(o.agents_port, 0);
    assert_int_equal(o.grace_s, 120);
    assert_int_equal(ray_options_parse("http://h:1 agents=6822 grace=0", &o, &err), 0);
    assert_int_equal(o.agents_port, 6822);
    assert_int_equal(o.grace_s, 0);
    static const char *const bad[] = {"",
                                      "head:8265",
                                      "file:///etc/passwd",
                                      "http://h:1 tokn=/x",
                                      "http://h:1 token=relative",
                                      "http://h:1 word",
                                      "http://h:1 cert=/c",
                                      "http://h:1 agents=no",
                                      "http://h:1 agents=70000",
                                      "http://h:1 grace=-1",
                                      NULL};
    for (int i = 0; bad[i]; i++)
        assert_int_equal(ray_options_parse(bad[i], &o, &err), -1);
    assert_int_equal(ray_options_parse("http://h:1 tokn=/x", &o, &err), -1);
    assert_non_null(strstr(err.text, "tokn"));
}

/* --- records ------------------------------------------------------------------------------------
 */

static void lists_of_all_releases(void **state)
{
    json_t *now =
        from_text("[{\"type\":\"SUBMISSION\",\"submission_id\":\"a\",\"status\":\"FAILED\"},"
                  "{\"type\":\"DRIVER\",\"job_id\":\"01000000\",\"submission_id\":null},"
                  "{\"type\":\"SUBMISSION\"}, 7, null]");
    json_t *old = from_text("{\"raysubmit_1\":{\"status\":\"RUNNING\",\"entrypoint\":\"x\"}}");
    json_t *list = ray_jobs_normalise(now);

    (void)state;
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    list = ray_jobs_normalise(old);
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_get_string(json_array_get(list, 0), "submission_id", ""),
                        "raysubmit_1");
    json_decref(list);
    json_t *text = json_string("no");
    assert_null(ray_jobs_normalise(text));
    json_decref(text);
    json_decref(now);
    json_decref(old);
}

static struct ray_wish wish(const char *metadata, const char *rule)
{
    struct ray_wish out;
    json_t *job = json_pack("{s:o}", "metadata", from_text(metadata));

    ray_wish_read(job, rule, &out);
    json_decref(job);
    return out;
}

static void who_opts_in(void **state)
{
    (void)state;
    assert_false(wish("{}", "").wanted);
    assert_true(wish("{}", "auto").wanted);
    assert_false(wish("{\"oom_retry\":\"off\"}", "auto").wanted);
    assert_string_equal(wish("{\"oom_retry\":\"1\"}", "").policy, "auto");
    struct ray_wish w = wish("{\"oom_retry\":\"slime\",\"oom_max_retries\":\"2\",\"oom_allow\":"
                             "\"training\",\"oom_dry_run\":\"true\"}",
                             "");
    assert_string_equal(w.policy, "slime");
    assert_string_equal(w.allow, "training");
    assert_int_equal(w.max_retries, 2);
    assert_true(w.dry_run);
    assert_int_equal(w.grace_s, -1);
    assert_int_equal(wish("{\"oom_retry\":\"auto\",\"oom_grace_s\":\"0\"}", "").grace_s, 0);
    w = wish("{\"oom_retry\":\"auto\",\"oom_max_retries\":\"many\"}", "");
    assert_int_equal(w.max_retries, -1);
    assert_true(w.problem[0]);
    assert_false(wish("{\"oom_retry\":\"a; rm -rf /\"}", "").wanted);
    assert_false(wish("{\"oom_retry\":7}", "").wanted);
}

static bool elsewhere(const char *job)
{
    char why[160];
    json_t *json = from_text(job);
    bool is = ray_owned_elsewhere(json, why, sizeof(why));

    json_decref(json);
    return is;
}

static void names_of_packages(void **state)
{
    static const char *const others[] = {
        "s3://bucket/x.zip",    "gcs://.zip",       "gcs://../x.zip",        "gcs://a/b.zip",
        "gcs://_ray_pkg_1.whl", "/local/directory", "gcs://_ray_pkg_1.zip/", NULL};
    char name[20];

    (void)state;
    assert_true(ray_package_name("gcs://_ray_pkg_1.zip", name, sizeof(name)));
    assert_string_equal(name, "_ray_pkg_1");
    assert_false(ray_package_name("gcs://_ray_pkg_12345678901234567890.zip", name, sizeof(name)));
    for (int i = 0; others[i]; i++)
        assert_false(ray_package_name(others[i], name, sizeof(name)));
}

static void one_owner_of_the_retry(void **state)
{
    (void)state;
    assert_false(elsewhere("{\"entrypoint\":\"python train.py\"}"));
    assert_false(elsewhere("{\"entrypoint\":\"python oomrunner.py --name=oomrun\"}"));
    assert_true(elsewhere("{\"entrypoint\":\"oomrun -- python train.py\"}"));
    assert_true(elsewhere("{\"entrypoint\":\"cd x && /opt/bin/oomrun -- python train.py\"}"));
    assert_true(elsewhere("{\"entrypoint\":\"x\",\"metadata\":{\"slurm_job_id\":\"7\"}}"));
    assert_true(elsewhere("{\"entrypoint\":\"x\",\"metadata\":{\"oom_supervisor\":\"oomrun\"}}"));
    assert_true(elsewhere(
        "{\"entrypoint\":\"x\",\"runtime_env\":{\"env_vars\":{\"SLURM_JOB_ID\":\"7\"}}}"));
}

static void the_next_submission(void **state)
{
    struct oom_edits edits = {NULL, 0};
    struct oom_error err = {""};
    json_t *job = from_text(
        "{\"submission_id\":\"my-oom7\",\"entrypoint\":\"python t.py\",\"metadata\":{\"k\":\"v\"},"
        "\"runtime_env\":{\"working_dir\":\"gcs://_ray_pkg_1.zip\",\"env_vars\":{\"A\":\"1\","
        "\"B\":\"2\"},\"pip\":[\"x\"]}}");
    json_t *resources = from_text("{\"CPU\":2.0,\"GPU\":0.5,\"memory\":1000000.0,\"big\":1.0}");
    json_t *labels = from_text("{\"ray.io/node-id\":\"abc\",\"zone\":\"a\"}");
    char id[64];

    (void)state;
    /* The user's own name may look like ours. */
    ray_next_id(job, 2, id, sizeof(id));
    assert_string_equal(id, "my-oom7-oom2");
    oom_edits_add(&edits, "env:A", "1", "9", NULL);
    oom_edits_add(&edits, "env:B", "2", NULL, NULL);
    oom_edits_add(&edits, "ray:memory", "1000000", "2000000", NULL);
    struct ray_next next = {.id = id,
                            .entrypoint = "python t.py --x 1",
                            .resources = resources,
                            .labels = labels,
                            .edits = &edits,
                            .lineage = 4,
                            .attempt = 2};
    json_t *request = ray_next_request(job, &next, &err);
    assert_non_null(request);
    json_t *wanted = from_text(
        "{\"submission_id\":\"my-oom7-oom2\",\"entrypoint\":\"python t.py --x 1\",\"metadata\":"
        "{\"k\":\"v\",\"oom_lineage\":\"4\",\"oom_attempt\":\"2\",\"oom_former\":\"my-oom7\"},"
        "\"runtime_env\":{\"working_dir\":\"gcs://_ray_pkg_1.zip\",\"env_vars\":{\"A\":\"9\"},"
        "\"pip\":[\"x\"]},\"entrypoint_num_cpus\":2.0,\"entrypoint_num_gpus\":0.5,"
        "\"entrypoint_memory\":2000000,\"entrypoint_resources\":{\"big\":1.0},"
        "\"entrypoint_label_selector\":{\"zone\":\"a\"}}");
    assert_true(json_equal(request, wanted));
    assert_true(ray_is_attempt(request, 4, 2));
    assert_false(ray_is_attempt(request, 4, 3));
    /* The record that the edits were made for is as it was. */
    assert_string_equal(
        json_get_string(json_object_get(json_object_get(job, "runtime_env"), "env_vars"), "A", ""),
        "1");
    ray_next_id(request, 3, id, sizeof(id));
    assert_string_equal(id, "my-oom7-oom3");
    json_decref(request);
    json_decref(wanted);
    oom_edits_add(&edits, "ray:object_store_memory", NULL, "1", NULL);
    assert_null(ray_next_request(job, &next, &err));
    oom_edits_free(&edits);
    json_decref(job);
    json_decref(resources);
    json_decref(labels);
}

/* --- entrypoints --------------------------------------------------------------------------------
 */

static void starts_of_scripts(void **state)
{
    struct ray_start s;

    (void)state;
    assert_true(ray_start_parse("A=1 bash -x run.sh 'a b' --c=\"d e\"", &s));
    assert_int_equal(s.count, 6);
    assert_int_equal(s.shell, 1);
    assert_string_equal(s.words[s.file], "run.sh");
    assert_string_equal(s.words[s.file + 1], "a b");
    assert_string_equal(s.words[s.file + 2], "--c=d e");
    char *inlined = ray_start_inline(&s, "echo \"$1\"\nit's");
    assert_string_equal(inlined, "A=1 bash -x -c 'echo \"$1\"\nit'\\''s' run.sh 'a b' '--c=d e'");
    free(inlined);
    ray_start_free(&s);
    assert_true(ray_start_parse("./run.sh x", &s));
    inlined = ray_start_inline(&s, "true");
    assert_string_equal(inlined, "bash -c true ./run.sh x");
    free(inlined);
    ray_start_free(&s);
    static const char *const others[] = {"",
                                         "   ",
                                         "python train.py",
                                         "bash",
                                         "bash -c 'x'",
                                         "bash run.sh > log",
                                         "bash $HOME/run.sh",
                                         "bash run.sh && true",
                                         "bash run.sh 'open",
                                         "bash run.sh \"$x\"",
                                         "bash *.sh",
                                         NULL};
    for (int i = 0; others[i]; i++)
        assert_false(ray_start_parse(others[i], &s));
}

/* --- a raylet's log -----------------------------------------------------------------------------
 */

/* As 2.60 writes it: the job's worker is chosen, the driver's supervisor of another job stays. */
static const char raylet_log[] =
    "[2026-11-29 14:40:41,899 I 10900 10921] (raylet) threshold_memory_monitor.cc:128: Node memory "
    "usage above threshold, used: 3807838208, threshold_bytes: 3791476736\n"
    "[2026-11-29 14:40:42,465 I 10900 10900] (raylet) node_manager.cc:3199: Killing 1 worker(s), "
    "kill details: Memory on the node (IP: 192.0.2.2, ID: 1601) was 3.59GB used / 23.54GB limit\n"
    "OOM kill reason: Memory usage 3807838208B exceeded threshold of 3791476736B\n"
    "Considered workers: [\n"
    "Selected to kill: (Actor(85f9): job ID=02000000, lease ID=0100, task name=A.__init__, pid=1)\n"
    "(Actor(f42c): job ID=01000000, lease ID=0000, task name=_ray_internal_job_actor_h1, pid=2)\n"
    "]\n"
    "[2026-11-29 14:40:43,160 I 10900 10900] (raylet) worker_killing_policy_by_time.cc:74: Still\n";

static void whose_worker_was_killed(void **state)
{
    char *text = ray_raylet_kills(raylet_log, sizeof(raylet_log) - 1, "02000000");

    (void)state;
    assert_int_equal(strncmp(text, "[2026-11-29 14:40:42,465", 24), 0);
    assert_non_null(strstr(text, "3.59GB used"));
    assert_null(strstr(text, "Still"));
    assert_null(strstr(text, "threshold_memory_monitor"));
    free(text);
    text = ray_raylet_kills(raylet_log, sizeof(raylet_log) - 1, "01000000");
    assert_string_equal(text, "");
    free(text);
    text = ray_raylet_kills("", 0, "01000000");
    assert_string_equal(text, "");
    free(text);
}

/* --- the log in JSON ----------------------------------------------------------------------------
 */

struct text {
    char bytes[4096];
    size_t length;
};

static int collect(void *arg, const char *bytes, size_t length)
{
    struct text *text = arg;

    assert_true(text->length + length < sizeof(text->bytes));
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
    return 0;
}

static void unquoting(void **state)
{
    static const char answer[] = "{\"logs\": \"a\\nb\\t\\\"q\\\" \\\\ \\u00e9 \\ud83d\\ude00 "
                                 "\\ud83d! end\"}";
    static const char plain[] = "a\nb\t\"q\" \\ \xc3\xa9 \xf0\x9f\x98\x80 ! end";

    (void)state;
    /* Whatever the portions are, and from wherever it is wanted. */
    for (size_t portion = 1; portion < sizeof(answer); portion++)
        for (int64_t skip = 0; skip < (int64_t)sizeof(plain); skip += 5) {
            struct text text = {"", 0};
            struct ray_unquote u = {.skip = skip, .left = 1000, .sink = collect, .arg = &text};
            for (size_t at = 0; at < sizeof(answer) - 1; at += portion) {
                size_t n = sizeof(answer) - 1 - at;
                assert_int_equal(ray_unquote_feed(&u, answer + at, n < portion ? n : portion), 0);
            }
            assert_string_equal(text.bytes, plain + skip);
            assert_int_equal(u.given, (int64_t)sizeof(plain) - 1 - skip);
        }
    struct text text = {"", 0};
    struct ray_unquote u = {.left = 3, .sink = collect, .arg = &text};
    assert_int_equal(ray_unquote_feed(&u, answer, sizeof(answer) - 1), 1);
    assert_string_equal(text.bytes, "a\nb");
    u = (struct ray_unquote){.left = 100, .sink = collect, .arg = &text};
    assert_int_equal(ray_unquote_feed(&u, "{\"logs\": \"\\x\"}", 14), -1);
}

/* --- packages -----------------------------------------------------------------------------------
 */

static void put(const char *directory, const char *name, const char *content, mode_t mode)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void packing(void **state)
{
    char directory[] = "/tmp/oomretry-package-XXXXXX", path[300], name[64], again[64];
    char *zip, *second;
    size_t length, second_length;
    struct oom_error err = {""};
    int seen = 0;

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/sub", directory);
    assert_int_equal(mkdir(path, 0755), 0);
    put(directory, "run.sh", "old", 0755);
    put(directory, "sub/conf.yaml", "key: 1\n", 0644);
    assert_int_equal(
        ray_package_make(directory, "run.sh", "new one", 7, 1 << 20, &zip, &length, name, &err), 0);
    assert_int_equal(ray_package_make(directory, "run.sh", "new one", 7, 1 << 20, &second,
                                      &second_length, again, &err),
                     0);
    assert_string_equal(name, again);
    assert_int_equal(strncmp(name, "_ray_pkg_", 9), 0);
    free(second);
    struct archive *a = archive_read_new();
    struct archive_entry *entry;
    archive_read_support_format_zip(a);
    assert_int_equal(archive_read_open_memory(a, zip, length), ARCHIVE_OK);
    while (archive_read_next_header(a, &entry) == ARCHIVE_OK) {
        char content[32] = "";
        archive_read_data(a, content, sizeof(content) - 1);
        if (strcmp(archive_entry_pathname(entry), "run.sh") == 0) {
            assert_string_equal(content, "new one");
            assert_int_equal(archive_entry_perm(entry), 0755);
        } else {
            assert_string_equal(archive_entry_pathname(entry), "sub/conf.yaml");
            assert_string_equal(content, "key: 1\n");
        }
        seen++;
    }
    assert_int_equal(seen, 2);
    archive_read_free(a);
    free(zip);
    assert_int_equal(
        ray_package_make(directory, "run.sh", "new one", 7, 10, &zip, &length, name, &err), -1);
    assert_non_null(strstr(err.text, "too large"));
    assert_null(zip);
    const char *const files[] = {"run.sh", "sub/conf.yaml", "sub", NULL};
    for (int i = 0; files[i]; i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
        remove(path);
    }
    rmdir(directory);
}

/* --- over HTTP ----------------------------------------------------------------------------------
 */

struct server {
    int fd;
    char url[64];
    const char *const *answers; /* one a connection: status line's rest, body */
    char got[8][2048];          /* what was asked */
    int count;
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct server *s = arg;

    for (int i = 0; s->answers[2 * i]; i++) {
        char head[256];
        int fd = accept(s->fd, NULL, NULL);
        ssize_t n = read(fd, s->got[i], sizeof(s->got[i]) - 1);
        s->got[i][n > 0 ? n : 0] = '\0';
        const char *body = s->answers[2 * i + 1];
        int length = snprintf(head, sizeof(head),
                              "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                              s->answers[2 * i], strlen(body));
        if (write(fd, head, (size_t)length) < 0 || write(fd, body, strlen(body)) < 0)
            perror("write");
        close(fd);
        s->count = i + 1;
    }
    return NULL;
}

static struct ray_client *client_of(struct server *s, const char *const *answers, const char *words)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    char line[512];
    struct ray_options o;
    struct oom_error err;

    memset(s, 0, sizeof(*s));
    s->answers = answers;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    getsockname(s->fd, (struct sockaddr *)&address, &length);
    snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(address.sin_port));
    snprintf(line, sizeof(line), "%s %s", s->url, words);
    assert_int_equal(ray_options_parse(line, &o, &err), 0);
    pthread_create(&s->thread, NULL, serve, s);
    return ray_open(&o, &err);
}

static void done(struct server *s, struct ray_client *client)
{
    pthread_join(s->thread, NULL);
    close(s->fd);
    ray_close(client);
}

static void which_cluster(void **state)
{
    static const char *const answers[] = {
        "200 OK", "{\"version\":\"4\",\"ray_version\":\"2.60.0\",\"session_name\":\"session_x\"}",
        /* A release that does not tell its session. */
        "200 OK", "{\"version\":\"1\",\"ray_version\":\"2.0.0\"}", "200 OK",
        "{\"data\":{\"result\":{\"result\":[{\"node_id\":\"aa\",\"state\":\"ALIVE\"},"
        "{\"node_id\":\"bb\",\"is_head_node\":true,\"state\":\"ALIVE\"}]}}}",
        "200 OK", "<html>", "401 Unauthorized", "Unauthorized: Missing authentication token", NULL};
    struct server s;
    struct ray_client *client = client_of(&s, answers, "");
    struct oom_error err = {""};
    char session[64];

    (void)state;
    assert_int_equal(ray_identify(client, session, sizeof(session), &err), 0);
    assert_string_equal(session, "session_x");
    assert_int_equal(ray_identify(client, session, sizeof(session), &err), 0);
    assert_string_equal(session, "node_bb");
    assert_int_equal(ray_identify(client, session, sizeof(session), &err), -1);
    assert_non_null(strstr(err.text, "not JSON"));
    assert_int_equal(ray_identify(client, session, sizeof(session), &err), -1);
    assert_non_null(strstr(err.text, "token=FILE"));
    assert_null(strstr(s.got[0], "uthorization"));
    done(&s, client);
}

static void a_token_is_sent(void **state)
{
    static const char *const answers[] = {"200 OK", "[]", NULL};
    char path[] = "/tmp/oomretry-token-XXXXXX", words[64];
    struct server s;
    struct oom_error err = {""};
    json_t *jobs;
    int fd = mkstemp(path);

    (void)state;
    assert_int_equal(write(fd, "s3cret\n", 7), 7);
    close(fd);
    snprintf(words, sizeof(words), "token=%s", path);
    struct ray_client *client = client_of(&s, answers, words);
    assert_int_equal(ray_list(client, &jobs, &err), 0);
    assert_int_equal(json_array_size(jobs), 0);
    json_decref(jobs);
    assert_non_null(strstr(s.got[0], "Authorization: Bearer s3cret\r\n"));
    done(&s, client);
    unlink(path);
}

/* The id is taken: by ourselves before an interruption, or by somebody else. */
static void submitting_twice(void **state)
{
    static const char taken[] = "Traceback (most recent call last):\n  x\nValueError: Job with "
                                "submission_id a-oom2 already exists.";
    static const char *const answers[] = {
        "200 OK",
        "{\"submission_id\":\"a-oom2\"}",
        "500 Internal Server Error",
        taken,
        "200 OK",
        "{\"submission_id\":\"a-oom2\",\"metadata\":{\"oom_lineage\":\"3\",\"oom_attempt\":\"2\"}}",
        "500 Internal Server Error",
        taken,
        "200 OK",
        "{\"submission_id\":\"a-oom2\",\"metadata\":{}}",
        "500 Internal Server Error",
        "No available agent",
        "404 Not Found",
        "Job a-oom2 does not exist",
        NULL};
    struct server s;
    struct ray_client *client = client_of(&s, answers, "");
    struct oom_error err = {""};
    json_t *request = from_text("{\"submission_id\":\"a-oom2\",\"entrypoint\":\"x\",\"metadata\":"
                                "{\"oom_lineage\":\"3\",\"oom_attempt\":\"2\"}}");

    (void)state;
    assert_int_equal(ray_submit(client, request, &err), 0);
    assert_int_equal(ray_submit(client, request, &err), 0);
    assert_int_equal(ray_submit(client, request, &err), -1);
    assert_non_null(strstr(err.text, "somebody else"));
    assert_int_equal(ray_submit(client, request, &err), -1);
    assert_non_null(strstr(err.text, "No available agent"));
    json_decref(request);
    done(&s, client);
}

static void logs_in_parts(void **state)
{
    static const char *const answers[] = {
        "200 OK", "first ", "206 Partial Content", "second", "416 Range Not Satisfiable", "",
        /* An agent that is gone: all of it from the dashboard, without the known part. */
        "404 Not Found", "", "200 OK", "{\"logs\": \"first second third\"}", NULL};
    struct server s;
    struct ray_client *client = client_of(&s, answers, "");
    struct oom_error err = {""};
    struct text text = {"", 0};
    int64_t offset = 0;
    json_t *job =
        json_pack("{s:s, s:s}", "submission_id", "a b", "driver_agent_http_address", s.url);
    static const int64_t offsets[] = {6, 12, 12, 18};

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ray_driver_log(client, job, &offset, 100, collect, &text, &err), 0);
        assert_int_equal(offset, offsets[i]);
    }
    assert_string_equal(text.bytes, "first second third");
    assert_non_null(strstr(s.got[0], "GET /logs/job-driver-a%20b.log"));
    assert_null(strstr(s.got[0], "Range:"));
    assert_non_null(strstr(s.got[1], "Range: bytes=6-"));
    assert_non_null(strstr(s.got[4], "GET /api/jobs/a%20b/logs"));
    json_decref(job);
    done(&s, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),
        cmocka_unit_test(lists_of_all_releases),
        cmocka_unit_test(who_opts_in),
        cmocka_unit_test(names_of_packages),
        cmocka_unit_test(one_owner_of_the_retry),
        cmocka_unit_test(the_next_submission),
        cmocka_unit_test(starts_of_scripts),
        cmocka_unit_test(whose_worker_was_killed),
        cmocka_unit_test(unquoting),
        cmocka_unit_test(packing),
        cmocka_unit_test(which_cluster),
        cmocka_unit_test(a_token_is_sent),
        cmocka_unit_test(submitting_twice),
        cmocka_unit_test(logs_in_parts),
    };

    return cmocka_run_group_tests_name("ray", tests, NULL, NULL);
}
