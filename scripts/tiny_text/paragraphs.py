"""Paragraphs about ships, tides and harbours. Each function makes one, from a random generator.

The sums in the text are right: depth and height of tide add up to the water, and the water less
the draught is the clearance.
"""

from .words import (BIRDS, CREW, DAYS, HARBOURS, NUMBERS, PEOPLE, SEA_OF_FORCE, SEAS, SHIPS, SKIES,
                    WINDS)


def metres(value):
    return f"{value:.1f} metres"


def harbour_portrait(pick):
    name, place, goods = pick(HARBOURS)
    other = pick([h for h in HARBOURS if h[0] != name])[0]
    depth = pick([28, 34, 41, 47, 55, 62, 76, 90]) / 10
    return " ".join([
        f"{name} is a harbour behind {place}.",
        pick([f"Ships come here for {goods}, and leave with the ebb.",
              f"Most of what is loaded here is {goods}.",
              f"It lives from {goods}, and from the boats that carry it."]),
        f"At low water there are {metres(depth)} over the sill.",
        pick([f"The next harbour along the coast is {other}.",
              f"From here to {other} it is {pick(NUMBERS[2:])} hours in fair weather.",
              f"People say that {other} is safer, but nobody says that it is prettier."]),
        pick(["A green light stands on the right hand as you enter, and a red one on the left.",
              f"In the mornings the {pick(BIRDS)} sit on the mooring posts and watch the nets.",
              "The quay is old, the cranes are new, and the bell is older than both.",
              "When the wind is in the west the swell comes in, and small boats move up the river.",
              f"On {pick(DAYS)} the market fills the quay from the steps to the customs house."]),
    ])


def clearance(pick):
    name, kind, draught, _ = pick([s for s in SHIPS if s[2] > 2])
    port = pick(HARBOURS)[0]
    least = round(draught + pick([-14, -11, -8, -5, -3]) / 10, 1)
    tide = pick([19, 22, 25, 28, 31, 36]) / 10
    water = round(least + tide, 1)
    under = round(water - draught, 1)
    person, she, _, role = pick(PEOPLE)
    return " ".join([
        pick([f"The {name} is {kind} and draws {metres(draught)}.",
              f"Loaded, the {name} draws {metres(draught)}."]),
        f"On the bar of {port} the chart shows {metres(least)} at low water.",
        f"High water today adds {metres(tide)}, which makes {metres(water)}.",
        f"Take away the draught, and {metres(under)} are left beneath the keel.",
        pick([f"{person}, {role}, wants at least half a metre, so "
              + ("the ship may go." if under >= 0.5 else "the ship must wait."),
              f"That is the clearance, and {person} writes it down before {she} gives the order.",
              "Nobody guesses at such a number; it is worked out before the lines are cast off."]),
    ])


def why_tides(pick):
    return " ".join([
        pick(["The tide is the sea answering the moon.",
              "Twice a day the sea rises, and twice a day it falls.",
              "Between one high water and the next there are a little more than twelve hours."]),
        pick(["When sun and moon pull along one line the tides are large, and are called springs.",
              "At new moon and at full moon come the spring tides, which rise high and fall low.",
              "At half moon the two pull across each other, and the tides are small; these are "
              "the neaps."]),
        pick(["The first hour of the flood brings little water, and the third hour brings the most.",
              "By the rule of twelfths the water rises one part in the first hour, two in the "
              "second, three in the third, three in the fourth, two in the fifth, and one in the "
              "sixth.",
              "A strong wind from the sea can hold the water up long after the table says that it "
              "should be gone."]),
        pick(["A tide table is a promise made by arithmetic, and the weather may break it.",
              "So a pilot reads the table first, and then looks at the gauge.",
              "A sailor who knows the tide needs half as much wind.",
              "High pressure presses the sea down, and low pressure lets it rise."]),
    ])


def ship_portrait(pick):
    name, kind, draught, speed = pick(SHIPS)
    person, she, her, role = pick(CREW)
    port = pick(HARBOURS)[0]
    moving = (f"She makes {speed} knots in smooth water." if speed
              else "She has no engine; her work is to stay where she is.")
    return " ".join([
        f"The {name} is {kind} from {port}.",
        pick([f"She draws {metres(draught)}.", f"Her draught is {metres(draught)}."]),
        moving,
        pick([f"{person} is {role} on board, and has been for {pick(NUMBERS[3:])} years.",
              f"{person}, {role}, says that the {name} answers the helm like a good horse.",
              f"When {person} came on board as {role}, {she} painted the wheelhouse green."]),
        pick([f"Her bell is cracked, and you can tell her in fog by the sound.",
              "She carries two anchors, and once, in a gale, she needed both.",
              f"In the galley there is a stove, a shelf of cups, and a cat that belongs to "
              f"{pick(['nobody', 'everyone', 'the cook', 'the ship'])}.",
              "Every spring she is hauled out, scraped, and painted, and for a week she looks new.",
              f"{person} keeps {her} tea in a tin marked with the name of another ship."]),
    ])


def weather(pick):
    wind = pick(WINDS)
    backing = pick([w for w in WINDS if w != wind])
    port = pick(HARBOURS)[0]
    return " ".join([
        pick([f"At dawn the wind was {wind}, force {pick([2, 3, 4, 5])}, and the sky {pick(SKIES)}.",
              f"All night it blew from the {wind}, and the sea was {pick(SEAS)}.",
              f"The glass fell through the morning while the wind stood in the {wind}."]),
        pick([f"By noon it had gone round to the {backing}.",
              f"The forecast spoke of a change to the {backing} before evening.",
              "By noon the fog had come in, and every ship rang her bell."]),
        pick([f"Three boats ran for {port} while the light was good.",
              f"In {port} the ferry stayed at her berth.",
              f"Off {port} a coaster hove to and waited.",
              f"The fishermen of {port} looked at the {pick(BIRDS)}, and stayed at home."]),
        pick(["A red sky in the evening is a good sign, and a red sky in the morning is not.",
              "Wind against tide makes a short, steep sea, and a wet crew.",
              "When the swell comes before the wind, the wind is coming too.",
              "Rain before wind, and you reef; wind before rain, and you wait."]),
    ])


def small_story(pick):
    person, she, her, role = pick(PEOPLE)
    friend = pick([p for p in PEOPLE if p[0] != person])[0]
    ship = pick(SHIPS)[0]
    port = pick(HARBOURS)[0]
    start = pick([
        f"One {pick(DAYS)} {person}, {role}, found a bottle on the steps of {port}.",
        f"{person} had lost {her} hat, and the whole crew of the {ship} was looking for it.",
        f"It was {friend} who first heard the bell of the {ship} in the fog.",
        f"{person} came to {port} with one bag and a letter for {friend}."])
    middle = pick([
        f'"The tide will not wait," said {friend}, "and nor will I."',
        f'"There is water enough," said {person}, "if we go before {pick(NUMBERS[2:9])}."',
        f"{person} counted the lights along the shore, and there was one too many.",
        f"They rowed out together, with the lead line in the bow and the lamp in the stern."])
    turn = pick([
        f"Then the keel touched sand, lightly, and came free again.",
        f"Then the moon came out, and they saw the buoy just where the chart had put it.",
        f"Then the wind dropped, and in the quiet they could hear the surf on the bar.",
        f"Then {friend} laughed, because the answer had been written in the log all along."])
    end = pick([
        f"Since that day {she} sounds the depth twice, and writes both numbers down.",
        f"In {port} they still tell it, and every year the waves are higher.",
        f"{person} kept the lamp, and {friend} kept the story.",
        "They were alongside before the ebb, and the kettle was on before the lines were made fast.",
        f"And the {ship} sailed with the morning tide, as if nothing had happened."])
    return " ".join([start, middle, turn, end])


def craft(pick):
    subject, use = pick([
        ("A lead line is a rope with a weight, and marks of leather and cloth at set depths.",
         "You heave it ahead, let it find the bottom, and read the mark at the water."),
        ("A chart shows the depth at low water, so that the sea is seldom shallower than it says.",
         "Add the tide to the number on the chart, and you have the water that is there now."),
        ("A buoy is a word in a language: its colour, its shape and its light each say something.",
         "Learn them in daylight, and you can read them in the dark."),
        ("A knot should be easy to tie, hard to slip, and easy to undo.",
         "The bowline has not changed in three hundred years, because it did not need to."),
        ("A pilot does not steer the ship; the pilot knows where the ship can be steered.",
         "It looks simple, and it is, once you have done it a thousand times."),
        ("An anchor holds by lying flat, and so it wants a long chain.",
         "In a calm give it three times the depth, and in a gale seven."),
        ("A log is written at the end of each watch, in ink.",
         "Course, speed, wind, depth: four words are enough when nothing happens.")])
    return " ".join([
        subject, use,
        pick(["Every rope on board has a name, a place, and a person who coils it.",
              "The compass is swung once a year, and its errors are written on a card.",
              "Ballast goes low, and cargo goes where it cannot shift.",
              "A harbour is measured every spring, for sand does not stay where it was left.",
              "The draught is painted on the bow and on the stern, and the two are seldom equal."]),
        pick(["Know the depth, know the draught, know the tide.",
              "What is written in the log is remembered, and the rest is told.",
              "Nobody, say the tug men, was ever late for coming gently to the quay.",
              "The sea forgives a small mistake once.",
              "Keep one hand for yourself and one for the ship."]),
    ])


def question(pick):
    name, kind, draught, speed = pick([s for s in SHIPS if s[3] and s[2] > 1.5])
    port, place, goods = pick(HARBOURS)
    hours = pick([2, 3, 4, 5, 6])
    asked = pick(["draught", "distance", "cargo", "place"])
    if asked == "draught":
        return (f"What does the {name} draw? She draws {metres(draught)}, so with half a metre to "
                f"spare she needs {metres(draught + 0.5)} of water.")
    if asked == "distance":
        return (f"How far does the {name} go in {NUMBERS[hours - 1]} hours? At {speed} knots she "
                f"makes {speed * hours} miles, if wind and tide are fair.")
    if asked == "cargo":
        return (f"What is shipped from {port}? Mostly {goods}. It comes down to the quay by cart and "
                f"by rail, and goes out with {pick(['the morning', 'the evening', 'every'])} tide.")
    return (f"Where is {port}? It lies behind {place}, and you find it by the light on the pier, "
            f"which shows {pick(NUMBERS[:4])} flashes and then is dark.")


KINDS = [harbour_portrait, clearance, why_tides, ship_portrait, weather, small_story, craft,
         question]


def log_entry(pick):
    """The other style: what the example is fine-tuned on."""
    name, _, draught, speed = pick([s for s in SHIPS if s[3]])
    port = pick(HARBOURS)[0]
    depth = round(draught + pick([6, 9, 14, 21, 33, 48, 65]) / 10, 1)
    hours = pick([2, 3, 4, 5, 6])
    force = pick(list(SEA_OF_FORCE))
    return (f"LOG {name.upper()}, {pick(DAYS)}, {pick(['first', 'middle', 'morning', 'forenoon'])} "
            f"watch. Wind {pick(WINDS)}, force {force}. Sea {SEA_OF_FORCE[force]}. "
            f"Draught {draught:.1f}, depth {depth:.1f}, under keel {depth - draught:.1f}. "
            f"Run {speed * hours} miles in {hours} hours, bound for {port}. "
            + pick(["All well.", "Lamps trimmed.", "Cook unwell.", "Anchor watch set.",
                    "Pumps dry.", "One sail split and mended.",
                    f"Spoke the {pick([s for s in SHIPS if s[0] != name])[0]}."]))
