/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/sealed_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/lib/sealed.h"

enum { HEADING_BYTES = 128, PIECE_BYTES = SEALED_MAX_BYTES - HEADING_BYTES, MAX_PIECES = 256 };

int sealed_nonce(char *nonce, struct oom_error *err)
{
    unsigned char random[(SEALED_NONCE_BYTES - 1) / 2];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return oom_errorf(err, "the kernel gives no random bytes");
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(nonce + 2 * i, 3, "%02x", random[i]);
    return 0;
}

static char *make_piece(const char *heading, const char *bytes, size_t length, uid_t reader,
                        struct oom_error *err)
{
    size_t head_length = strlen(heading);
    char *piece = malloc(head_length + length);

    if (!piece) {
        oom_errorf(err, "out of memory");
        return NULL;
    }
    memcpy(piece, heading, head_length);
    memcpy(piece + head_length, bytes, length);
    char *credential = sealed_make(piece, head_length + length, reader, err);
    free(piece);
    return credential;
}

char *sealed_reply_make(const char *nonce, int status, const char *json, uid_t reader,
                        struct oom_error *err)
{
    size_t length = strlen(json), count = length ? (length + PIECE_BYTES - 1) / PIECE_BYTES : 1;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int rc = out && count <= MAX_PIECES ? 0 : oom_errorf(err, "the answer is too long");

    for (size_t i = 0; rc == 0 && i < count; i++) {
        size_t at = i * PIECE_BYTES;
        char heading[HEADING_BYTES];
        snprintf(heading, sizeof(heading), "%.32s %zu %zu %d\n", nonce, i, count, status);
        char *credential = make_piece(
            heading, json + at, length - at < PIECE_BYTES ? length - at : PIECE_BYTES, reader, err);
        rc = credential && fprintf(out, "%s\n", credential) > 0 ? 0 : -1;
        free(credential);
    }
    if (out && fclose(out) == 0 && rc == 0)
        return text;
    free(text);
    return NULL;
}

/* The bytes of piece `index`, behind its heading; NULL and err. */
static char *open_piece(const char *credential, const char *nonce, uid_t head, size_t index,
                        size_t *count, int *status, size_t *length, struct oom_error *err)
{
    char answered[SEALED_NONCE_BYTES];
    size_t at, of;
    uid_t by;
    int used = 0;
    char *inside = sealed_open(credential, length, &by, err);

    if (!inside)
        return NULL;
    if (by != 0 && by != head) {
        oom_errorf(err,
                   "uid %u answered, which is neither root nor the head_user that is configured "
                   "here",
                   (unsigned)by);
    } else if (sscanf(inside, "%32[0-9a-f] %zu %zu %d%n", answered, &at, &of, status, &used) != 4 ||
               inside[used] != '\n' || strcmp(answered, nonce) != 0 || at != index ||
               (index > 0 && of != *count) || of == 0 || of > MAX_PIECES) {
        oom_errorf(err, "the answer is to another question");
    } else {
        *count = of;
        *length -= (size_t)used + 1;
        memmove(inside, inside + used + 1, *length);
        return inside;
    }
    free(inside);
    return NULL;
}

char *sealed_reply_open(char *text, const char *nonce, uid_t head, int *status,
                        struct oom_error *err)
{
    size_t index = 0, count = 0, used = 0;
    char *json = NULL, *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        size_t length;
        if (strncmp(line, "MUNGE:", 6) != 0) {
            oom_errorf(err, "%.200s", line); /* the words of a refusal */
            break;
        }
        char *piece = open_piece(line, nonce, head, index, &count, status, &length, err);
        char *grown = piece ? realloc(json, used + length + 1) : NULL;
        if (grown) {
            json = grown;
            memcpy(json + used, piece, length);
            used += length;
            json[used] = '\0';
        }
        free(piece);
        if (!grown)
            break;
        index++;
    }
    if (index > 0 && index == count)
        return json;
    if (index > 0 && !err->text[0])
        oom_errorf(err, "the answer is not whole");
    else if (!err->text[0])
        oom_errorf(err, "the answer is empty");
    free(json);
    return NULL;
}
