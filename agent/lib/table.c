/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/lib/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { MAX_COLUMNS = 16 };

struct table {
    int columns;
    size_t rows;
    char **cells; /* rows * columns, the titles first */
};

static int add_row(struct table *table, char *const *cells)
{
    size_t columns = (size_t)table->columns;
    char **grown = realloc(table->cells, (table->rows + 1) * columns * sizeof(char *));

    if (!grown)
        return -1;
    table->cells = grown;
    memcpy(grown + table->rows * columns, cells, columns * sizeof(char *));
    table->rows++;
    return 0;
}

struct table *table_new(const char *titles)
{
    struct table *table = calloc(1, sizeof(*table));
    char *cells[MAX_COLUMNS];

    if (!table)
        return NULL;
    for (const char *p = titles; table->columns < MAX_COLUMNS; p++) {
        size_t n = strcspn(p, "\t");
        cells[table->columns++] = strndup(p, n);
        p += n;
        if (!*p)
            break;
    }
    add_row(table, cells);
    return table;
}

void table_row(struct table *table, ...)
{
    char *cells[MAX_COLUMNS] = {NULL};
    va_list ap;

    if (!table)
        return;
    va_start(ap, table);
    for (int i = 0; i < table->columns; i++) {
        const char *text = va_arg(ap, const char *);
        cells[i] = strdup(text ? text : "");
        /* Names and reasons come from users: no control characters reach the terminal. */
        for (char *p = cells[i]; p && *p; p++)
            if ((unsigned char)*p < ' ' || *p == 127)
                *p = '?';
    }
    va_end(ap);
    add_row(table, cells);
}

/* Columns that the text takes on the terminal. */
static int width(const char *text)
{
    wchar_t wide[512] = {0};
    size_t n = text ? mbstowcs(wide, text, 512) : 0;

    if (n == (size_t)-1 || n == 512)
        return (int)strlen(text);
    int w = wcswidth(wide, n);
    return w < 0 ? (int)strlen(text) : w;
}

void table_print(const struct table *table, FILE *out)
{
    int widths[MAX_COLUMNS] = {0};

    if (!table)
        return;
    for (size_t r = 0; r < table->rows; r++)
        for (int c = 0; c < table->columns; c++) {
            int w = width(table->cells[r * (size_t)table->columns + (size_t)c]);
            widths[c] = w > widths[c] ? w : widths[c];
        }
    for (size_t r = 0; r < table->rows; r++) {
        for (int c = 0; c < table->columns; c++) {
            const char *cell = table->cells[r * (size_t)table->columns + (size_t)c];
            bool last = c + 1 == table->columns;
            fprintf(out, "%s%*s", cell ? cell : "", last ? 0 : widths[c] - width(cell) + 2, "");
        }
        fputc('\n', out);
    }
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->rows * (size_t)table->columns; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}
