/* SPDX-License-Identifier: Apache-2.0
 *
 * Files where somebody else writes, looks, or has no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/lib/files.h"
#include "agent/lib/paths.h"

/* In the place of libc's: a file server that is out of room says so here, and nowhere before. */
static bool no_room;

int close(int fd)
{
    int rc = (int)syscall(SYS_close, fd);

    if (!no_room || rc < 0)
        return rc;
    errno = EDQUOT;
    return -1;
}

struct place {
    char directory[64];
    char path[128];
};

static int setup(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    strcpy(place->directory, "/tmp/oomretry-files-XXXXXX");
    *state = place;
    if (!mkdtemp(place->directory))
        return -1;
    snprintf(place->path, sizeof(place->path), "%s/a", place->directory);
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;

    unlink(place->path);
    rmdir(place->directory);
    free(place);
    return 0;
}

static void room_that_ends_at_close(void **state)
{
    const struct place *place = *state;
    char temporary[128], kept[128];
    struct oom_error err = {""};

    snprintf(temporary, sizeof(temporary), "%s/XXXXXX", place->directory);
    assert_int_equal(file_replace(place->path, "old", 3, 0600, &err), 0);
    no_room = true;
    int wrote = file_write_temporary(temporary, "abc", 3, 0600, &err);
    int replaced = file_replace(place->path, "new", 3, 0600, NULL);
    int overwrote = file_overwrite(place->path, "new", 3, NULL);
    snprintf(kept, sizeof(kept), "%s/kept", place->directory);
    int copied = file_copy_tail(place->path, kept, 100);
    no_room = false;
    assert_int_equal(copied, -1);
    assert_int_equal(access(kept, F_OK), -1);
    assert_int_equal(file_overwrite(place->path, "old", 3, NULL), 0);
    assert_int_equal(file_copy_tail(place->path, kept, 2), 0);
    char *bytes = NULL;
    size_t length = 0;
    assert_int_equal(file_read(kept, 10, &bytes, &length, NULL), 0);
    assert_string_equal(bytes, "ld");
    free(bytes);
    unlink(kept);
    assert_int_equal(wrote, -1);
    assert_non_null(strstr(err.text, strerror(EDQUOT)));
    assert_int_equal(access(temporary, F_OK), -1);
    assert_int_equal(replaced, -1);
    assert_int_equal(overwrote, -1);
}

/* TMPDIR is often a directory of a job, which ends before what it has started does. */
static void a_directory_for_temporary_files_that_is_gone(void **state)
{
    const struct place *place = *state;
    const char *before = getenv("TMPDIR");
    char path[128], *long_name = malloc(200), *kept = before ? strdup(before) : NULL;
    struct oom_error err = {""};

    setenv("TMPDIR", place->directory, 1);
    assert_int_equal(file_write_in_tmp("x", "abc", 3, 0600, path, sizeof(path), &err), 0);
    assert_memory_equal(path, place->directory, strlen(place->directory));
    assert_int_equal(unlink(path), 0);
    memset(long_name, 'n', 199);
    long_name[0] = '/';
    long_name[199] = '\0';
    for (const char *const *name = (const char *[]){"/nonexistent", "", long_name, NULL}; *name;
         name++) {
        setenv("TMPDIR", *name, 1);
        assert_int_equal(file_write_in_tmp("x", "abc", 3, 0600, path, sizeof(path), &err), 0);
        assert_memory_equal(path, "/tmp/x-", 7);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(file_write_in_tmp("no/x", "abc", 3, 0600, path, sizeof(path), &err), -1);
    assert_string_equal(path, "");
    kept ? setenv("TMPDIR", kept, 1) : unsetenv("TMPDIR");
    free(kept);
    free(long_name);
}

static void a_file_that_is_being_written_is_hidden(void **state)
{
    const struct place *place = *state;
    union {
        struct inotify_event event;
        char bytes[4096];
    } buffer;
    int watch = inotify_init1(IN_NONBLOCK), seen = 0;

    assert_true(inotify_add_watch(watch, place->directory, IN_CREATE) >= 0);
    assert_int_equal(file_replace(place->path, "abc", 3, 0600, NULL), 0);
    ssize_t length = read(watch, buffer.bytes, sizeof(buffer));
    for (ssize_t at = 0; at < length; seen++) {
        const struct inotify_event *event = (const void *)(buffer.bytes + at);
        assert_int_equal(event->name[0], '.');
        at += (ssize_t)sizeof(*event) + event->len;
    }
    close(watch);
    assert_int_equal(seen, 1);
}

static void a_state_directory_of_somebody_else(void **state)
{
    const struct place *place = *state;
    char path[256], made[4096], elsewhere[64];

    if (geteuid() != 0)
        skip();
    snprintf(elsewhere, sizeof(elsewhere), "/var/tmp/oomretry-%u", (unsigned)geteuid());
    setenv("XDG_STATE_HOME", place->directory, 1);
    snprintf(path, sizeof(path), "%s/oomretry", place->directory);
    assert_int_equal(paths_state_dir(made, sizeof(made), NULL), 0);
    assert_string_equal(made, path);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(paths_state_dir(made, sizeof(made), NULL), 0);
    assert_string_equal(made, elsewhere);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(chown(path, 54321, 54321), 0);
    assert_int_equal(paths_state_dir(made, sizeof(made), NULL), 0);
    assert_string_equal(made, elsewhere);
    rmdir(path);
    rmdir(elsewhere);
    unsetenv("XDG_STATE_HOME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(room_that_ends_at_close, setup, teardown),
        cmocka_unit_test_setup_teardown(a_directory_for_temporary_files_that_is_gone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_being_written_is_hidden, setup, teardown),
        cmocka_unit_test_setup_teardown(a_state_directory_of_somebody_else, setup, teardown),
    };
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
