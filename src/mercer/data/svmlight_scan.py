"""One pass over svmlight text (bytes) by compiled loops: labels, query numbers, feature indices and values.

    line      =  [label {"," label}]  ["qid:" integer]  {index ":" value}  ["#" comment]

`count` gives upper bounds for the arrays, `scan` fills them.  Both see whole lines only, so that a text can be cut at
line ends and the pieces scanned side by side.
"""

from typing import Any

import numpy as np

from mercer.compiled import exact_loop
from mercer.data.decimal_text import INFINITE, MALFORMED, NOT_A_NUMBER, SLOW, read_number

LABEL, LABEL_RANGE, INDEX, INDEX_RANGE, COLON, VALUE, VALUE_RANGE, QUERY = 1, 2, 3, 4, 5, 6, 7, 8
COMPLAINTS = {
    LABEL: "a label must be a number",
    LABEL_RANGE: "a label must be finite",
    INDEX: "a feature must be written index:value with a whole index",
    INDEX_RANGE: "the feature index is beyond the limit of 2^40",
    COLON: "a feature index must be followed by a colon and a value",
    VALUE: "a feature value must be a number",
    VALUE_RANGE: "a feature value must be finite",
    QUERY: "qid: must be followed by a whole number below 2^63",
}
MOST = (1 << 63) - 1

# Places in the array of facts that `scan` returns.
ROWS, ENTRIES, LABELS, SMALLEST, LARGEST, DISORDER, MISSING, NOTED, COUNTERS = 0, 1, 2, 3, 4, 5, 6, 7, 8


@exact_loop
def count(text: Any) -> Any:
    """Upper bounds (rows, entries, labels) for the lines of `text`."""
    rows, entries, labels = 0, 0, 0
    i, end = 0, len(text)
    while i < end:
        while i < end and (text[i] == 32 or text[i] == 9 or text[i] == 13):
            i += 1
        content = i < end and text[i] != 10 and text[i] != 35
        if content:
            rows += 1
            labels += 1
        while i < end and text[i] > 35:  # the first word
            if text[i] == 44:
                labels += 1
            elif text[i] == 58:
                entries += 1
            i += 1
        while i < end and text[i] != 10 and text[i] != 35:
            if text[i] == 58:
                entries += 1
            i += 1
        while i < end and text[i] != 10:
            i += 1
        i += 1
    return rows, entries, labels


@exact_loop
def _whole(text: Any, i: Any, end: Any) -> Any:
    """Read digits at i: (value, place after them); -1 without digits, -2 when it passes 63 bits."""
    start = i
    value = np.int64(0)
    while i < end and 48 <= text[i] <= 57:
        digit = np.int64(text[i]) - 48
        if value >= 0:
            value = np.int64(10 * value + digit if value <= (MOST - digit) // 10 else -2)
        i += 1
    return (value if i > start else -1), i


@exact_loop
def _ends(text: Any, i: Any, end: Any) -> Any:
    """Whether a word ends before i."""
    return i >= end or text[i] == 32 or text[i] == 10 or text[i] == 9 or text[i] == 13 or text[i] == 35


@exact_loop
def _after_blanks(text: Any, i: Any, end: Any) -> Any:
    while i < end and (text[i] == 32 or text[i] == 9 or text[i] == 13):
        i += 1
    return i


@exact_loop
def _noted(slow: Any, facts: Any, kind: Any, slot: Any, start: Any, stop: Any) -> Any:
    """Note a number that is left to the caller; the list grows by doubling."""
    used = 4 * facts[NOTED]
    if used == len(slow):
        longer = np.empty(2 * used + 64, np.int64)
        for k in range(used):
            longer[k] = slow[k]
        slow = longer
    slow[used], slow[used + 1], slow[used + 2], slow[used + 3] = kind, slot, start, stop
    facts[NOTED] += 1
    return slow


@exact_loop
def _scan_labels(text: Any, i: Any, high: Any, low: Any, ten: Any, labels: Any, facts: Any, slow: Any) -> Any:
    """Labels at the head of a line: (complaint or 0, place, notes); a word with a colon is no label."""
    end, word = len(text), i
    while i > word or text[i] != 113:  # "q": the query number of a line without label
        start = i
        outcome, value, i = read_number(text, i, end, high, low, ten)
        if outcome == MALFORMED:
            return LABEL, start, slow
        if i < end and text[i] == 58:
            return (0 if start == word else LABEL), word, slow
        if outcome in (NOT_A_NUMBER, INFINITE):
            return LABEL_RANGE, start, slow
        if outcome == SLOW:
            slow = _noted(slow, facts, 0, facts[LABELS], start, i)
        labels[facts[LABELS]] = value
        facts[LABELS] += 1
        if _ends(text, i, end):
            break
        if text[i] != 44 or i + 1 == end:
            return LABEL, start, slow
        i += 1
    return 0, i, slow


@exact_loop
def _scan_features(
    text: Any, i: Any, most: Any, high: Any, low: Any, ten: Any, indices: Any, values: Any, facts: Any, slow: Any
) -> Any:
    """Features up to the end of the line: (complaint or 0, place, notes)."""
    end = len(text)
    last = np.int64(-1)
    while True:
        i = _after_blanks(text, i, end)
        if i >= end or text[i] == 10 or text[i] == 35:
            return 0, i, slow
        start = i
        index, i = _whole(text, i, end)
        if index == -1:
            return INDEX, start, slow
        if index == -2 or index > most:
            return INDEX_RANGE, start, slow
        if i >= end or text[i] != 58:
            return COLON, start, slow
        start = i + 1
        outcome, value, i = read_number(text, start, end, high, low, ten)
        if outcome == MALFORMED or not _ends(text, i, end):
            return VALUE, start, slow
        if outcome == INFINITE:
            return VALUE_RANGE, start, slow
        if outcome == SLOW:
            slow = _noted(slow, facts, 1, facts[ENTRIES], start, i)
        elif outcome == NOT_A_NUMBER:
            facts[MISSING] += 1
        if index <= last:
            facts[DISORDER] += 1
        last = index
        facts[SMALLEST] = min(facts[SMALLEST], index)
        facts[LARGEST] = max(facts[LARGEST], index)
        indices[facts[ENTRIES]] = index
        values[facts[ENTRIES]] = value
        facts[ENTRIES] += 1


@exact_loop
def _scan_query(text: Any, i: Any) -> Any:
    """The optional query number: (-1 none, -2 malformed, else the number; place after it)."""
    end = len(text)
    i = _after_blanks(text, i, end)
    if i >= end or text[i] != 113:
        return -1, i
    if i + 4 >= end or text[i + 1] != 105 or text[i + 2] != 100 or text[i + 3] != 58:
        return -2, i
    number, after = _whole(text, i + 4, end)
    if number < 0 or not _ends(text, after, end):
        return -2, i
    return number, after


@exact_loop
def scan(text: Any, most: Any, high: Any, low: Any, ten: Any, rows: Any, indices: Any, values: Any, labels: Any) -> Any:
    """Fill the arrays from `text`; feature indices above `most` are refused.

    `rows` (n, 4) gets for each row: end of its entries, end of its labels, query number or -1, line from 0.  Returns
    (complaint or 0, its place in the text, facts, notes); four numbers of notes (0 label or 1 value, slot, start, stop)
    name a number that the caller must convert from its text.
    """
    facts = np.zeros(COUNTERS, np.int64)
    facts[SMALLEST] = MOST
    slow = np.empty(0, np.int64)
    i, end, line = 0, len(text), 0
    while i < end:
        i = _after_blanks(text, i, end)
        if i < end and text[i] != 10 and text[i] != 35:
            complaint, i, slow = _scan_labels(text, i, high, low, ten, labels, facts, slow)
            if complaint:
                return complaint, i, facts, slow
            query, i = _scan_query(text, i)
            if query == -2:
                return QUERY, i, facts, slow
            complaint, i, slow = _scan_features(text, i, most, high, low, ten, indices, values, facts, slow)
            if complaint:
                return complaint, i, facts, slow
            row = facts[ROWS]
            rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3] = facts[ENTRIES], facts[LABELS], query, line
            facts[ROWS] += 1
        while i < end and text[i] != 10:
            i += 1
        i += 1
        line += 1
    return 0, 0, facts, slow
